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

}  // namespace tessera
