#pragma once

#include "engine/core/tensor.h"

namespace tessera {

// Batch norm over all axes but the last, the channels (Ioffe and Szegedy, 2015):
//   y = h * weight + bias,  h = (x - mean) / sqrt(var + eps)
// x [..., C]; weight, bias [C]; running_mean, running_var [C], f32 beside bf16, else of x's type; -> [...,
// C].
//
// In training, mean and the biased variance are the batch's, and the running ones move to them by `momentum`,
// running_var by the unbiased variance. Else they are the running ones, constants. Fails for parameters of
// another shape or type, and in training for a single row, which has no variance.
struct BatchNormOptions {
  bool training = false;
  double momentum = 0.1, eps = 1e-5;
};
Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, const BatchNormOptions& options);

}  // namespace tessera
