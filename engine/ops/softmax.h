#pragma once

#include "engine/core/tensor.h"

namespace tessera {

/// Over the last axis, x [..., K] -> [..., K]. Each row's largest value is subtracted first, so nothing
/// overflows. -inf in x gives probability 0. They fail for a scalar.
Tensor softmax(const Tensor& x);      ///< y_j = exp(x_j) / sum_k exp(x_k)
Tensor log_softmax(const Tensor& x);  ///< y_j = x_j - log sum_k exp(x_k)

}  // namespace tessera
