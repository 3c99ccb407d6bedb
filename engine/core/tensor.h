#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/core/device.h"
#include "engine/core/dtype.h"
#include "engine/core/shape.h"
#include "engine/core/storage.h"

namespace tessera {

struct Leaf;

// A handle on contiguous row-major memory. Copies share the numbers; clone() does not. Reshapes and
// leading slices are views of the same memory, anything else is an op (engine/ops).
class Tensor {
 public:
  Tensor() = default;  // no tensor: defined() is false

  // Memory whose content is not set.
  static Tensor empty(const Shape& shape, DType dtype = DType::f32, Device device = Device::cpu);
  static Tensor zeros(const Shape& shape, DType dtype = DType::f32, Device device = Device::cpu);
  static Tensor full(const Shape& shape, double value, DType dtype = DType::f32, Device device = Device::cpu);
  // `values` in row-major order, converted to `dtype`; fails unless they are as many as the shape holds.
  static Tensor from(std::span<const double> values, const Shape& shape, DType dtype = DType::f32);
  static Tensor from(std::initializer_list<double> values, const Shape& shape, DType dtype = DType::f32);
  static Tensor from(std::span<const int64_t> values, const Shape& shape);  // i64

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int i) const { return shape_[i]; }
  int64_t elements() const { return shape_.elements(); }
  size_t bytes() const { return static_cast<size_t>(elements()) * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  Device device() const { return storage_ ? storage_->device() : Device::cpu; }

  // The elements; fails if T is not the tensor's type. A device pointer for a CUDA tensor.
  template <class T> T* data() const {
    expect_type(dtype_of<T>);
    return static_cast<T*>(raw());
  }
  void* raw() const;

  double item() const;                    // the one element; fails for any other count
  std::vector<double> values() const;     // all elements on the host, as double
  std::vector<int64_t> integers() const;  // the same for i64 and u8

  // The same numbers under another shape of as many elements. One size may be -1: what is left.
  // The view shares the gradient too.
  Tensor reshape(const Shape& shape) const;
  Tensor reshape(std::initializer_list<int64_t> sizes) const;
  // Entries [first, first + count) of axis 0, without a gradient: for data, not for a recorded value.
  Tensor rows(int64_t first, int64_t count) const;

  Tensor clone() const;          // a copy, without a gradient
  Tensor to(DType dtype) const;  // converted copy without a gradient (itself if the same)
  Tensor to(Device device) const;
  void copy_from(const Tensor& other) const;  // numbers of the same count, type and device
  void fill(double value) const;
  // Whether any other handle (a view or copy of this one) holds the memory too.
  bool shared() const { return storage_.use_count() > 1; }

  // --- gradients (engine/autograd/tape.h) ---

  // Makes this a leaf: a recorded op that reads it leaves d loss / d this in grad(). Returns itself.
  Tensor& require_grad();
  bool is_leaf() const { return leaf_ != nullptr; }
  // The gradient that backward() left; undefined before, and after zero_grad().
  Tensor grad() const;
  // The next backward() starts the gradient anew, in the memory that it has.
  void zero_grad() const;
  // The same numbers, as a constant: no gradient flows through.
  Tensor detach() const;

  // Where a tape knows this value: the tape's number (0: none) and its slot there. For tape.h alone.
  struct Place {
    uint64_t tape = 0;
    int slot = -1;
  };
  const Place& place() const { return place_; }
  void set_place(Place place) { place_ = place; }
  const std::shared_ptr<Leaf>& leaf() const { return leaf_; }

 private:
  void expect_type(DType dtype) const;

  std::shared_ptr<Storage> storage_;
  size_t offset_ = 0;  // bytes
  Shape shape_;
  DType dtype_ = DType::f32;
  Place place_;
  std::shared_ptr<Leaf> leaf_;
};

// What a leaf owns besides its numbers.
struct Leaf {
  Tensor grad;
  bool stale = true;    // grad's numbers are from an earlier step: write over them
  Tensor::Place place;  // where the current tape has met this leaf
};

}  // namespace tessera
