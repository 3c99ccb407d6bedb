#pragma once

#include "engine/core/tensor.h"
#include "engine/ops/activations.h"

namespace tessera {

/// The fully connected layer y = f(x W^T + b) of every row of x, f applied while the row is still in the
/// cache: x [..., K], weight W [N, K], bias b [N] or undefined -> [..., N]. Fails unless weight takes as many
/// columns as x has and the types agree.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation f = Activation::none);

}  // namespace tessera
