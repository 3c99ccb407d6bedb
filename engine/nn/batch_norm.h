#pragma once

#include <string>

#include "engine/nn/pass.h"
#include "engine/nn/scope.h"
#include "engine/ops/activations.h"

namespace tessera {

/// Batch norm of the last axis (Ioffe and Szegedy, 2015; engine/ops/batch_norm.h). The parameters weight and
/// bias [width] start at 1 and 0; the statistics running_mean and running_var [width] start at 0 and 1, and
/// each pass in training moves them by 0.1 of the way to the batch's. An activation f follows in the same
/// step, or in one of its own where a tape keeps all values to be looked at.
struct BatchNorm {
  BatchNorm() = default;
  BatchNorm(const Scope& scope, int64_t width);

  /// [..., width] -> [..., width]; the residual, like x, is added before f.
  Tensor operator()(const Tensor& x, const Pass& pass, Activation f = Activation::none,
                    const Tensor& residual = {}) const;

  Tensor weight, bias, running_mean, running_var;
  std::string path;
};

}  // namespace tessera
