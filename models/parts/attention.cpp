#include "models/parts/attention.h"

#include <cmath>

#include "engine/autograd/observe.h"
#include "models/parts/class_token.h"
#include "models/parts/offsets.h"
#include "models/parts/token_layout.h"

namespace tessera {

AttentionOptions read_attention(Fields fields, int64_t dim) {
  AttentionOptions o;
  o.heads = fields.get<int64_t>("heads", Range::at_least(1));
  o.head_dim = fields.get<int64_t>("head_dim", dim / o.heads);
  if (o.head_dim < 1)
    fields.fail_at("heads", "is ", o.heads, ", which leaves no width of ", dim, "; give head_dim");
  o.qkv_bias = fields.get("qkv_bias", false);
  o.temperature = fields.get("temperature", 1.0, Range::above(0));
  o.learned_scale = fields.choice("scale", {"fixed", "learned"}, "fixed") == "learned";
  o.mask_diagonal = fields.get("mask_diagonal", false);
  o.relative_bias = fields.get("relative_bias", false);
  if (const auto prior = fields.find_object("prior")) o.prior = read_prior(*prior);
  if (const auto decay = fields.find_object("decay")) o.decay = read_decay(*decay);
  fields.done();
  return o;
}

double AttentionOptions::scale_of(int64_t width) const {
  return 1 / (temperature * std::sqrt(static_cast<double>(width)));
}

Tensor attend(const Tensor& qkv, int64_t heads, const ScoreTerms& terms) {
  return PlainAttention::active() ? attention_plain(qkv, heads, terms) : attention(qkv, heads, terms);
}

Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads, const ScoreTerms& terms) {
  return PlainAttention::active() ? attention_plain(q, k, v, heads, terms) : attention(q, k, v, heads, terms);
}

Tensor attend_of_first(const Tensor& q, const Tensor& kv, int64_t heads, const ScoreTerms& terms) {
  return PlainAttention::active() ? attention_of_first_plain(q, kv, heads, terms)
                                  : attention_of_first(q, kv, heads, terms);
}

Attention::Attention(const Scope& scope, int64_t dim, const AttentionOptions& o, Grid its_grid,
                     int64_t its_prefix)
    : options(o), grid(its_grid), prefix(its_prefix), path(scope.path()) {
  const int64_t inner = o.heads * o.head_dim;
  qkv = Linear(scope / "qkv", dim, 3 * inner, {.bias = o.qkv_bias, .weight_init = o.qkv_init});
  proj = Linear(scope / "proj", inner, dim);
  if (o.learned_scale) scale = scope.parameter("scale", {o.heads}, constant(o.scale_of(o.head_dim)));
  if (o.relative_bias)
    relative_position_bias_table =
        scope.parameter("relative_position_bias_table",
                        {(2 * grid.height - 1) * (2 * grid.width - 1), o.heads}, truncated_normal(0.02));
  if (o.prior.sharing == Sharing::head || o.prior.sharing == Sharing::layer)
    prior.emplace(scope / "prior", o.prior.sharing == Sharing::head ? o.heads : 1, o.prior.hidden, grid,
                  prefix);
  decay = Decay(scope / "gate", o.decay, dim, o.heads);
}

ScoreTerms Attention::terms_of_pairs(Grid part) const {
  ScoreTerms terms;
  terms.scale = options.scale_of(options.head_dim);
  terms.learned_scale = scale;
  if (prior) terms.prior = (*prior)(part);
  if (relative_position_bias_table.defined()) {
    const Tensor table = offsets_within(relative_position_bias_table, grid, part);
    terms.bias = spread(table, offset_index(part, prefix, -1), prefix + part.height * part.width, 0.0);
  }
  terms.grid = part;
  terms.prefix = prefix;
  terms.mask_diagonal = options.mask_diagonal;
  return terms;
}

ScoreTerms Attention::terms(const Tensor& x, const Tensor& omega) const {
  ScoreTerms terms = terms_of_pairs(grid);
  if (!prior) terms.prior = omega;
  decay.apply(x, terms);
  return terms;
}

ScoreTerms Attention::terms(const Tensor& x, Lines lines) const {
  ScoreTerms terms = terms_of_pairs(line_grid(grid, lines));
  decay.apply(x, terms);
  if (terms.gates.defined()) terms.gates = by_line(terms.gates, grid, lines);
  return terms;
}

Tensor Attention::operator()(const Tensor& x, const Tensor& omega, const Tensor& mask) const {
  const ModuleScope here(path);
  const TokenLayoutScope map({.grid = grid, .prefix = prefix});
  ScoreTerms terms = this->terms(x, omega);
  terms.mask = mask;
  return proj(attend(qkv(x), options.heads, terms));
}

Tensor Attention::of_first(const Tensor& x, const Tensor& omega) const {
  const ModuleScope here(path);
  const TokenLayoutScope map({.grid = grid, .prefix = prefix});
  const int64_t inner = options.heads * options.head_dim;
  const Tensor q = qkv.part(0, inner)(first_token(x)), kv = qkv.part(inner, 2 * inner)(x);
  return proj(attend_of_first(q, kv, options.heads, terms(x, omega)));
}

}  // namespace tessera
