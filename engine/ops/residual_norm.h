#pragma once

#include <string>

#include "engine/core/tensor.h"
#include "engine/ops/dropout.h"

namespace tessera {

/// A sum and its norm: see residual_norm().
struct NormedSum {
  Tensor sum, normed;
};

/// drop_path(x, branch, draw) of dropout.h, and the layer_norm() (norm.h) of it, or of some `images` of it,
/// with the same bits. A GPU computes both in one kernel, and in one kernel the gradients of the sum and of
/// the branch, so that the sum is read once less each way. `norm_path` is the module of the norm, under which
/// it is recorded. Fails as the two do.
NormedSum residual_norm(const Tensor& x, const Tensor& branch, const PathDraw& draw, const Tensor& weight,
                        const Tensor& bias, double eps, const std::string& norm_path,
                        const Tensor& images = {});

}  // namespace tessera
