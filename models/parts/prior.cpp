#include "models/parts/prior.h"

#include "engine/autograd/observe.h"
#include "engine/ops/activations.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/linear.h"
#include "engine/ops/reduce.h"
#include "models/parts/offsets.h"

namespace tessera {

SpatialPrior::SpatialPrior(const Scope& scope, int64_t its_heads, int64_t its_hidden, Grid its_grid,
                           int64_t its_prefix)
    : grid(its_grid), heads(its_heads), hidden(its_hidden), prefix(its_prefix), path(scope.path()) {
  const Scope fc1 = scope / "fc1", fc2 = scope / "fc2";
  fc1_weight = fc1.parameter("weight", {heads * hidden, 2}, truncated_normal(0.02));
  fc1_bias = fc1.parameter("bias", {heads * hidden}, constant(0));
  // Omega starts at 1, so the layer starts as plain self-attention.
  fc2_weight = fc2.parameter("weight", {heads, hidden}, constant(0));
  fc2_bias = fc2.parameter("bias", {heads}, constant(1));
}

Tensor SpatialPrior::operator()(Grid part) const {
  const ModuleScope here(path);
  const Tensor steps = offsets(part, fc1_weight.dtype(), fc1_weight.device());         // [T, 2]
  const Tensor features = linear(steps, fc1_weight, fc1_bias, Activation::relu);       // [T, H * hidden]
  const Tensor weighed = multiply(features.reshape({-1, heads, hidden}), fc2_weight);  // [T, H, hidden]
  const Tensor table = add(sum(weighed, {-1}), fc2_bias);                              // [T, H]
  const int64_t tokens = prefix + part.height * part.width;
  return spread(table, offset_index(part, prefix, 1), tokens, 1.0);
}

PriorOptions read_prior(Fields fields) {
  const std::string sharing = fields.choice("sharing", {"head", "layer", "model"}, "head");
  PriorOptions prior;
  prior.sharing = sharing == "head" ? Sharing::head : sharing == "layer" ? Sharing::layer : Sharing::model;
  prior.hidden = fields.get<int64_t>("hidden", 16, Range::at_least(1));
  fields.done();
  return prior;
}

}  // namespace tessera
