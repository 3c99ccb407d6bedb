#include "engine/nn/layer_norm.h"

#include "engine/autograd/observe.h"
#include "engine/ops/norm.h"

namespace tessera {

LayerNorm::LayerNorm(const Scope& scope, int64_t dim, double norm_eps)
    : weight(scope.parameter("weight", {dim}, constant(1))),
      bias(scope.parameter("bias", {dim}, constant(0))),
      eps(norm_eps),
      path(scope.path()) {}

Tensor LayerNorm::operator()(const Tensor& x) const {
  const ModuleScope here(path);
  return layer_norm(x, weight, bias, eps);
}

NormedSum LayerNorm::of_residual(const Tensor& x, const Tensor& branch, double p, uint64_t key) const {
  return residual_norm(x, branch, p, key, weight, bias, eps, path);
}

}  // namespace tessera
