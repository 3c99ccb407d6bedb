#pragma once

#include <string>

#include "engine/nn/scope.h"

namespace tessera {

/// Layer norm over the last axis (Ba et al., 2016; engine/ops/norm.h). weight and bias [dim] start at 1 and
/// 0.
struct LayerNorm {
  LayerNorm() = default;
  LayerNorm(const Scope& scope, int64_t dim, double eps = 1e-5);

  Tensor operator()(const Tensor& x) const;  ///< [..., dim] -> [..., dim]

  Tensor weight, bias;
  double eps = 1e-5;
  std::string path;
};

}  // namespace tessera
