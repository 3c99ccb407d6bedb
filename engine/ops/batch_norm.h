#pragma once

#include "engine/core/tensor.h"
#include "engine/ops/activations.h"

namespace tessera {

/// Batch norm over all axes but the last, the channels (Ioffe and Szegedy, 2015):
///   y = f(h * weight + bias + residual),  h = (x - mean) / sqrt(var + eps)
/// x [..., C]; weight, bias [C]; running_mean, running_var [C], f32 for a bf16 x, otherwise x's type;
/// residual like x, or undefined: none is added; -> [..., C].
///
/// In training the mean and the biased variance are the batch's, and the running statistics move towards them
/// (the unbiased variance) by `momentum`. Otherwise the running statistics are used, as constants. f is
/// applied in the same pass over memory. On a CPU the residual is added in that pass too, with the bits of
/// add() and f as ops of their own; on a GPU, and where a tape keeps every value, they are such ops. Fails
/// for parameters or a residual of another shape or type, and in training for a single row, which has no
/// variance.
struct BatchNormOptions {
  bool training = false;
  double momentum = 0.1, eps = 1e-5;
  Activation f = Activation::none;
};
Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, const BatchNormOptions& options, const Tensor& residual = {});

}  // namespace tessera
