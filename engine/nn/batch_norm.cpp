#include "engine/nn/batch_norm.h"

#include "engine/autograd/observe.h"
#include "engine/ops/batch_norm.h"

namespace tessera {

BatchNorm::BatchNorm(const Scope& scope, int64_t width)
    : weight(scope.parameter("weight", {width}, constant(1))),
      bias(scope.parameter("bias", {width}, constant(0))),
      running_mean(scope.statistic("running_mean", {width}, constant(0))),
      running_var(scope.statistic("running_var", {width}, constant(1))),
      path(scope.path()) {}

Tensor BatchNorm::operator()(const Tensor& x, const Pass& pass) const {
  const ModuleScope here(path);
  return batch_norm(x, weight, bias, running_mean, running_var, {.training = pass.training});
}

}  // namespace tessera
