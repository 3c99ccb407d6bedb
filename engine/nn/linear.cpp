#include "engine/nn/linear.h"

#include "engine/autograd/observe.h"
#include "engine/ops/linear.h"

namespace tessera {

Linear::Linear(const Scope& scope, int64_t in, int64_t out, const Options& options)
    : weight(scope.parameter("weight", {out, in}, options.weight_init)),
      bias(options.bias ? scope.parameter("bias", {out}, options.bias_init) : Tensor()),
      path(scope.path()) {}

Tensor Linear::operator()(const Tensor& x, Activation activation) const {
  const Inside here(path);
  return linear(x, weight, bias, activation);
}

}  // namespace tessera
