#pragma once

#include <initializer_list>

#include "engine/core/tensor.h"

namespace tessera {

// A vector that wants its gradient.
inline Tensor leaf(std::initializer_list<double> values, DType dtype = DType::f64) {
  return Tensor::from(values, {static_cast<int64_t>(values.size())}, dtype).require_grad();
}

}  // namespace tessera
