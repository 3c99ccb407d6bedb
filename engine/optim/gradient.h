#pragma once

#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/core/tensor.h"

namespace tessera {

// A gradient as the update rules read it: numbers of the parameter's type or, where MixedWeights has lent
// them, the bf16 numbers that the backward pass left.
template <class T> struct GradientNumbers {
  const T* own;
  const bf16* lent;

  TESSERA_HD T operator[](int64_t i) const { return lent ? T(float(lent[i])) : own[i]; }
};

template <class T> GradientNumbers<T> numbers_of_gradient(const Tensor& gradient) {
  if (gradient.dtype() == DType::bf16) return {nullptr, gradient.data<bf16>()};
  return {gradient.data<T>(), nullptr};
}

}  // namespace tessera
