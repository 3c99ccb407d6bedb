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

/// A handle on contiguous row-major memory. Copies of the handle share the memory; clone() copies it.
/// Reshapes and leading slices are views of the same memory; everything else is an op (engine/ops).
class Tensor {
 public:
  Tensor() = default;  ///< no tensor: defined() is false

  /// A tensor whose content is not set.
  static Tensor empty(const Shape& shape, DType dtype = DType::f32, Device device = Device::cpu);
  static Tensor zeros(const Shape& shape, DType dtype = DType::f32, Device device = Device::cpu);
  static Tensor full(const Shape& shape, double value, DType dtype = DType::f32, Device device = Device::cpu);
  /// A tensor of `values` in row-major order, converted to `dtype`, on the CPU. Fails unless there is one
  /// value for each element of the shape.
  static Tensor from(std::span<const double> values, const Shape& shape, DType dtype = DType::f32);
  static Tensor from(std::initializer_list<double> values, const Shape& shape, DType dtype = DType::f32);
  static Tensor from(std::span<const int64_t> values, const Shape& shape);  ///< i64

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int i) const { return shape_[i]; }
  int64_t elements() const { return shape_.elements(); }
  size_t bytes() const { return static_cast<size_t>(elements()) * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  Device device() const { return storage_ ? storage_->device() : Device::cpu; }

  /// A pointer to the elements, in device memory for a CUDA tensor. Fails if T is not the tensor's type.
  template <class T> T* data() const {
    expect_type(dtype_of<T>);
    return static_cast<T*>(raw());
  }
  void* raw() const;  ///< the same pointer for any type

  double item() const;                    ///< the only element; fails where there are none or more
  std::vector<double> values() const;     ///< all elements on the host, as double
  std::vector<int64_t> integers() const;  ///< all elements of an i64 or u8 tensor; fails for other types

  /// A view with another shape of as many elements, which shares memory and gradient. One size may be -1: it
  /// becomes whatever fits. Fails where the counts of elements differ.
  Tensor reshape(const Shape& shape) const;
  Tensor reshape(std::initializer_list<int64_t> sizes) const;
  /// A view of entries [first, first + count) of axis 0. It has no gradient, so it is for data and not for
  /// recorded values. Fails out of range.
  Tensor rows(int64_t first, int64_t count) const;

  /// Copies without a gradient. to() of the type or device that the tensor has already returns a constant
  /// that shares the memory.
  Tensor clone() const;
  Tensor to(DType dtype) const;
  Tensor to(Device device) const;
  /// Overwrites the elements with those of `other`, which may lie on another device. Fails unless the types
  /// and the counts of elements are the same.
  void copy_from(const Tensor& other) const;
  void fill(double value) const;
  /// Whether another handle, such as a view, holds the memory too.
  bool shared() const { return storage_.use_count() > 1; }

  // --- gradients (engine/autograd/tape.h) ---

  /// Makes this a leaf x: after a backward pass over ops that read it, grad() is dL/dx. Returns itself. Fails
  /// for integers and for a recorded value.
  Tensor& require_grad();
  bool is_leaf() const { return leaf_ != nullptr; }
  /// dL/dx as backward() has left it; undefined before it, and after zero_grad().
  Tensor grad() const;
  /// Makes the next backward() overwrite the gradient instead of adding to it. The memory stays.
  void zero_grad() const;
  /// A constant that shares the memory: no gradient flows through it.
  Tensor detach() const;

  /// Where this value is on a tape: the tape's number (0: on none) and the slot. For tape.h alone.
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
  size_t offset_ = 0;  ///< bytes
  Shape shape_;
  DType dtype_ = DType::f32;
  Place place_;
  std::shared_ptr<Leaf> leaf_;
};

/// The gradient of a leaf.
struct Leaf {
  Tensor grad;          ///< of the leaf's type, unless MixedWeights lends the bf16 copy's until zero_grad()
  bool stale = true;    ///< grad is of an earlier step: overwrite it
  Tensor::Place place;  ///< on the tape that met this leaf last
};

}  // namespace tessera
