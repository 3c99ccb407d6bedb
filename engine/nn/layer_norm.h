#pragma once

#include <cstdint>
#include <string>

#include "engine/nn/scope.h"
#include "engine/ops/residual_norm.h"

namespace tessera {

/// Layer norm over the last axis (Ba et al., 2016; engine/ops/norm.h). weight and bias [dim] start at 1 and
/// 0.
struct LayerNorm {
  LayerNorm() = default;
  LayerNorm(const Scope& scope, int64_t dim, double eps = 1e-5);

  Tensor operator()(const Tensor& x) const;  ///< [..., dim] -> [..., dim]
  /// The norm of some images (i64 [K], undefined: all): [B, ..., dim] -> [K, ..., dim].
  Tensor operator()(const Tensor& x, const Tensor& images) const;
  /// x + branch, dropped per image as drawn (engine/ops/dropout.h), and the norm of it or of some images.
  NormedSum of_residual(const Tensor& x, const Tensor& branch, const PathDraw& draw,
                        const Tensor& images = {}) const;

  Tensor weight, bias;
  double eps = 1e-5;
  std::string path;
};

}  // namespace tessera
