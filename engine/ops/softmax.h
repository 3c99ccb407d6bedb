#pragma once

#include "engine/core/tensor.h"

namespace tessera {

// Over the last axis, x [..., K] -> [..., K], in the form that does not overflow (the row's largest value is
// taken off first). -inf in x gives the probability 0.
Tensor softmax(const Tensor& x);      // y_j = exp(x_j) / sum_k exp(x_k)
Tensor log_softmax(const Tensor& x);  // y_j = x_j - log sum_k exp(x_k)

}  // namespace tessera
