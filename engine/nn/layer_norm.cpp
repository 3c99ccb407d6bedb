#include "engine/nn/layer_norm.h"

#include "engine/autograd/observe.h"
#include "engine/ops/norm.h"

namespace tessera {

LayerNorm::LayerNorm(const Scope& scope, int64_t dim, double norm_eps)
    : weight(scope.parameter("weight", {dim}, constant(1))),
      bias(scope.parameter("bias", {dim}, constant(0))),
      eps(norm_eps),
      path(scope.path()) {}

Tensor LayerNorm::operator()(const Tensor& x) const { return (*this)(x, {}); }

Tensor LayerNorm::operator()(const Tensor& x, const Tensor& images) const {
  const ModuleScope here(path);
  return layer_norm(x, weight, bias, eps, images);
}

NormedSum LayerNorm::of_residual(const Tensor& x, const Tensor& branch, const PathDraw& draw,
                                 const Tensor& images) const {
  return residual_norm(x, branch, draw, weight, bias, eps, path, images);
}

}  // namespace tessera
