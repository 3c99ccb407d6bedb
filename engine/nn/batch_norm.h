#pragma once

#include <string>

#include "engine/nn/pass.h"
#include "engine/nn/scope.h"

namespace tessera {

// Batch norm of the last axis (engine/ops/batch_norm.h): weight, bias [width], at first 1 and 0, and the
// statistics running_mean, running_var [width], at first 0 and 1, which training moves by 0.1.
struct BatchNorm {
  BatchNorm() = default;
  BatchNorm(const Scope& scope, int64_t width);

  Tensor operator()(const Tensor& x, const Pass& pass) const;  // [..., width] -> [..., width]

  Tensor weight, bias, running_mean, running_var;
  std::string path;
};

}  // namespace tessera
