#include "engine/core/tensor.h"

#include <optional>

#include "engine/core/convert_kernels.h"
#include "engine/core/device_backend.h"
#include "engine/core/error.h"
#include "engine/core/pool.h"

namespace tessera {

namespace {

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes) {
  to_device = where_memory_is(to_device);
  from_device = where_memory_is(from_device);
  if (to_device == from_device)
    backend(to_device).copy(to, from, bytes);
  else if (from_device == Device::cpu)
    backend(to_device).copy_from_host(to, from, bytes);
  else
    backend(from_device).copy_to_host(to, from, bytes);
}

template <class To> std::vector<To> host_values(const Tensor& tensor) {
  check(tensor.defined(), "tensor: values of an undefined tensor");
  const Tensor host = tensor.to(Device::cpu);
  return with_type(tensor.dtype(), [&]<class T>() {
    const T* data = host.data<T>();
    std::vector<To> values(static_cast<size_t>(host.elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = converted<To>(data[i]);
    return values;
  });
}

template <class From> Tensor from_host(std::span<const From> values, const Shape& shape, DType dtype) {
  Tensor tensor = Tensor::empty(shape, dtype);
  if (static_cast<int64_t>(values.size()) != shape.elements())
    fail("tensor: ", values.size(), " values for the shape ", shape, ", which has ", shape.elements());
  with_type(dtype, [&]<class T>() {
    for (size_t i = 0; i < values.size(); ++i) tensor.data<T>()[i] = converted<T>(values[i]);
  });
  return tensor;
}

}  // namespace

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  Tensor tensor;
  tensor.shape_ = shape;
  tensor.dtype_ = dtype;
  tensor.storage_ = std::make_shared<Storage>(device, tensor.bytes());
  return tensor;
}

Tensor Tensor::zeros(const Shape& shape, DType dtype, Device device) {
  Tensor tensor = empty(shape, dtype, device);
  backend(where_memory_is(device)).zero(tensor.raw(), tensor.bytes());
  return tensor;
}

Tensor Tensor::full(const Shape& shape, double value, DType dtype, Device device) {
  Tensor tensor = empty(shape, dtype, device);
  tensor.fill(value);
  return tensor;
}

Tensor Tensor::from(std::span<const double> values, const Shape& shape, DType dtype) {
  return from_host(values, shape, dtype);
}

Tensor Tensor::from(std::initializer_list<double> values, const Shape& shape, DType dtype) {
  return from(std::span(values.begin(), values.size()), shape, dtype);
}

Tensor Tensor::from(std::span<const int64_t> values, const Shape& shape) {
  return from_host(values, shape, DType::i64);
}

void* Tensor::raw() const {
  check(defined(), "tensor: data of an undefined tensor");
  return static_cast<std::byte*>(storage_->data()) + offset_;
}

void Tensor::expect_type(DType dtype) const {
  check(dtype == dtype_, "tensor: ", shape_, " holds ", dtype_, ", read as ", dtype);
}

double Tensor::item() const {
  check(elements() == 1, "tensor: item() of ", shape_, ", which has ", elements(), " elements");
  return values().front();
}

std::vector<double> Tensor::values() const { return host_values<double>(*this); }

std::vector<int64_t> Tensor::integers() const {
  check(!is_float(dtype_), "tensor: integers() of ", dtype_, " values");
  return host_values<int64_t>(*this);
}

Tensor Tensor::reshape(const Shape& shape) const {
  check(shape.elements() == elements(), "reshape: ", shape_, " to ", shape, ": ", elements(),
        " elements against ", shape.elements());
  Tensor view = *this;
  view.shape_ = shape;
  return view;
}

Tensor Tensor::reshape(std::initializer_list<int64_t> sizes) const {
  std::vector<int64_t> wanted(sizes);
  int64_t known = 1, *open = nullptr;
  for (int64_t& size : wanted) {
    check(size >= 0 || (size == -1 && open == nullptr), "reshape: only one size may be -1");
    if (size == -1)
      open = &size;
    else
      known *= size;
  }
  if (open != nullptr) *open = known == 0 ? 0 : elements() / known;
  return reshape(Shape(std::span<const int64_t>(wanted)));
}

Tensor Tensor::rows(int64_t first, int64_t count) const {
  check(rank() > 0 && first >= 0 && count >= 0 && first <= dim(0) && count <= dim(0) - first, "rows: ", count,
        " from row ", first, " of ", shape_);
  Tensor view = detach();
  view.shape_ = shape_.with(0, count);
  view.offset_ += static_cast<size_t>(first * shape_.elements(1, rank())) * size_of(dtype_);
  return view;
}

Tensor Tensor::clone() const {
  Tensor copy = empty(shape_, dtype_, device());
  copy.copy_from(*this);
  return copy;
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return detach();
  Tensor result = empty(shape_, dtype, device());
  backend(where_memory_is(device())).convert(elements(), dtype_, raw(), dtype, result.raw());
  return result;
}

Tensor Tensor::to(Device device) const {
  if (device == this->device()) return detach();
  std::optional<ConstantBlocks> constant;  // a step that is being captured keeps the numbers for all replays
  if (device != Device::cpu) constant.emplace();
  Tensor copy = empty(shape_, dtype_, device);
  copy_bytes(copy.raw(), device, raw(), this->device(), bytes());
  return copy;
}

void Tensor::copy_from(const Tensor& other) const {
  check(elements() == other.elements() && dtype_ == other.dtype_, "tensor: copy of ", other.dtype_, " ",
        other.shape_, " into ", dtype_, " ", shape_);
  copy_bytes(raw(), device(), other.raw(), other.device(), bytes());
}

void Tensor::fill(double value) const {
  backend(where_memory_is(device())).fill(elements(), value, dtype_, raw());
}

Tensor& Tensor::require_grad() {
  check(defined() && is_float(dtype_), "tensor: only floating values have a gradient, this one holds ",
        dtype_);
  check(place_.tape == 0,
        "tensor: a recorded value has its gradient on the tape; detach() it to make a leaf");
  if (!leaf_) leaf_ = std::make_shared<Leaf>();
  return *this;
}

Tensor Tensor::grad() const {
  if (!leaf_ || leaf_->stale || !leaf_->grad.defined()) return {};
  return leaf_->grad.reshape(shape_);
}

void Tensor::zero_grad() const {
  if (!leaf_) return;
  leaf_->stale = true;
  if (leaf_->grad.defined() && leaf_->grad.dtype() != dtype_) leaf_->grad = {};  // it was lent
}

Tensor Tensor::detach() const {
  Tensor constant = *this;
  constant.place_ = {};
  constant.leaf_.reset();
  return constant;
}

}  // namespace tessera
