#include "apps/inspector/lessons/lesson.h"

namespace tessera {

Tensor& Numbers::find_or_make(const std::string& name, const Shape& shape,
                              std::initializer_list<double> values) {
  for (auto& [known, tensor] : all_)
    if (known == name) return tensor;
  return all_.emplace_back(name, Tensor::from(values, shape, dtype_)).second;
}

Tensor Numbers::leaf(const std::string& name, const Shape& shape, std::initializer_list<double> values) {
  Tensor& x = find_or_make(name, shape, values);
  if (!x.is_leaf()) x.require_grad();
  x.zero_grad();
  return x;
}

Tensor Numbers::constant(const std::string& name, const Shape& shape, std::initializer_list<double> values) {
  return find_or_make(name, shape, values);
}

Numbers Numbers::copy(DType dtype, const std::string& off) const {
  Numbers copied(dtype, off);
  for (const auto& [name, tensor] : all_) copied.all_.emplace_back(name, tensor.clone().to(dtype));
  return copied;
}

NamedTensors Numbers::with(const NamedTensors& results) const {
  NamedTensors known = all_;
  known.insert(known.end(), results.begin(), results.end());
  return known;
}

}  // namespace tessera
