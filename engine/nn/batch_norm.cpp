#include "engine/nn/batch_norm.h"

#include "engine/autograd/observe.h"
#include "engine/autograd/tape.h"
#include "engine/ops/batch_norm.h"

namespace tessera {

BatchNorm::BatchNorm(const Scope& scope, int64_t width)
    : weight(scope.parameter("weight", {width}, constant(1))),
      bias(scope.parameter("bias", {width}, constant(0))),
      running_mean(scope.statistic("running_mean", {width}, constant(0))),
      running_var(scope.statistic("running_var", {width}, constant(1))),
      path(scope.path()) {}

Tensor BatchNorm::operator()(const Tensor& x, const Pass& pass, Activation f, const Tensor& residual) const {
  const ModuleScope here(path);
  BatchNormOptions options{.training = pass.training};
  if (f == Activation::none || residual.defined() || !tape_keeps_all()) {
    options.f = f;
    return batch_norm(x, weight, bias, running_mean, running_var, options, residual);
  }
  const Tensor z = batch_norm(x, weight, bias, running_mean, running_var, options);
  name_value(z, "out");  // two steps, so that both values are seen
  return activation(f, z);
}

}  // namespace tessera
