#include "models/parts/prior.h"

#include "engine/autograd/observe.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"
#include "models/parts/offsets.h"

namespace tessera {

SpatialPrior::SpatialPrior(const Scope& scope, int64_t its_heads, int64_t its_hidden, Grid its_grid,
                           int64_t its_prefix)
    : fc1(scope / "fc1", 2, its_heads * its_hidden, {.weight_init = truncated_normal(0.02)}),
      grid(its_grid),
      heads(its_heads),
      hidden(its_hidden),
      prefix(its_prefix),
      path(scope.path()),
      fc2_path((scope / "fc2").path()) {
  // Omega starts at 1, so the layer starts as plain self-attention.
  fc2_weight = (scope / "fc2").parameter("weight", {heads, hidden}, constant(0));
  fc2_bias = (scope / "fc2").parameter("bias", {heads}, constant(1));
}

Tensor SpatialPrior::fc2(const Tensor& features) const {
  const ModuleScope here(fc2_path);
  const Tensor weighed = multiply(features.reshape({-1, heads, hidden}), fc2_weight);  // [T, H, hidden]
  return add(sum(weighed, {-1}), fc2_bias);
}

Tensor SpatialPrior::operator()(Grid part) const {
  const ModuleScope here(path);
  const Tensor steps = offsets(part, fc2_weight.dtype(), fc2_weight.device());  // [T, 2]
  const Tensor table = fc2(fc1(steps, Activation::relu));                       // [T, H]
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
