#include "models/parts/attention.h"

#include <cmath>

#include "engine/autograd/observe.h"
#include "models/parts/offsets.h"

namespace tessera {

AttentionOptions read_attention(const Json& json, int64_t dim) {
  Fields fields(json, "attention");
  AttentionOptions o;
  o.heads = fields.required<int64_t>("heads");
  check(o.heads > 0, "attention: heads is ", o.heads, ", at least 1 is needed");
  o.head_dim = fields.get<int64_t>("head_dim", dim / o.heads);
  check(o.head_dim > 0, "attention: ", o.heads, " heads leave no width of ", dim, "; give head_dim or fewer heads");
  o.qkv_bias = fields.get("qkv_bias", false);
  const std::string scale = fields.get<std::string>("scale", "fixed");
  check(scale == "fixed" || scale == "learned", "attention: unknown scale '", scale, "'; there are fixed and learned");
  o.learned_scale = scale == "learned";
  o.mask_diagonal = fields.get("mask_diagonal", false);
  o.relative_bias = fields.get("relative_bias", false);
  o.prior = read_prior(fields.get("prior", Json()));
  o.decay = fields.get("decay", Json());
  fields.done();
  return o;
}

Attention::Attention(const Scope& scope, int64_t dim, const AttentionOptions& o, Grid its_grid, int64_t its_prefix)
    : options(o), grid(its_grid), prefix(its_prefix), path(scope.path()) {
  const int64_t inner = o.heads * o.head_dim;
  qkv = Linear(scope / "qkv", dim, 3 * inner, {.bias = o.qkv_bias});
  proj = Linear(scope / "proj", inner, dim);
  if (o.learned_scale)
    scale = scope.parameter("scale", {o.heads}, constant(1 / std::sqrt(static_cast<double>(o.head_dim))));
  if (o.relative_bias)
    relative_position_bias_table = scope.parameter(
        "relative_position_bias_table", {(2 * grid.height - 1) * (2 * grid.width - 1), o.heads}, truncated_normal(0.02));
  if (o.prior.sharing == Sharing::head || o.prior.sharing == Sharing::layer)
    prior.emplace(scope / "prior", o.prior.sharing == Sharing::head ? o.heads : 1, o.prior.hidden, grid, prefix);
  decay = Decay(scope / "gate", o.decay, dim, o.heads);
}

ScoreTerms Attention::terms(const Tensor& x, const Tensor& omega) const {
  ScoreTerms terms;
  terms.scale = 1 / std::sqrt(static_cast<double>(options.head_dim));
  terms.learned_scale = scale;
  terms.prior = prior ? (*prior)() : omega;
  if (relative_position_bias_table.defined())
    terms.bias = spread(relative_position_bias_table, offset_index(grid, prefix, -1), x.dim(1), 0.0);
  terms.grid = grid;
  terms.prefix = prefix;
  decay.apply(x, terms);
  terms.mask_diagonal = options.mask_diagonal;
  return terms;
}

Tensor Attention::operator()(const Tensor& x, const Tensor& omega) const {
  const Inside here(path);
  const auto attend = plain ? static_cast<Tensor (*)(const Tensor&, int64_t, const ScoreTerms&)>(attention_plain)
                            : static_cast<Tensor (*)(const Tensor&, int64_t, const ScoreTerms&)>(attention);
  return proj(attend(qkv(x), options.heads, terms(x, omega)));
}

}  // namespace tessera
