#include "engine/nn/linear.h"

#include "engine/autograd/observe.h"
#include "engine/autograd/tape.h"
#include "engine/ops/linear.h"
#include "engine/ops/shape.h"

namespace tessera {

Linear::Linear(const Scope& scope, int64_t in, int64_t out, const Options& options) : path(scope.path()) {
  const LinearRule rule = scope.linear_rule();
  const bool own = options.weight_init != nullptr;
  const Init own_bias = options.bias_init ? options.bias_init : constant(0);
  weight = scope.parameter("weight", {out, in}, own ? options.weight_init : weight_init(rule));
  if (options.bias) bias = scope.parameter("bias", {out}, own ? own_bias : bias_init(rule, in));
}

Tensor Linear::operator()(const Tensor& x, Activation f) const {
  const ModuleScope here(path);
  if (f == Activation::none || !tape_keeps_all()) return linear(x, weight, bias, f);
  const Tensor z = linear(x, weight, bias);  // two steps, so that both values are seen
  name_value(z, "out");
  return activation(f, z);
}

Linear Linear::part(int64_t first, int64_t count) const {
  const auto rows = [&](const Tensor& x) {
    if (!x.defined()) return x;
    return Tape::recording() ? slice(x, 0, first, count) : x.rows(first, count);
  };
  Linear layer;
  layer.weight = rows(weight);
  layer.bias = rows(bias);
  layer.path = path;
  return layer;
}

}  // namespace tessera
