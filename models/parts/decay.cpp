#include "models/parts/decay.h"

#include <cmath>
#include <vector>

#include "engine/ops/activations.h"

namespace tessera {

namespace {

// -log(gamma_n) of RMT's rates.
std::vector<double> rmt_slopes(int64_t heads, double initial, double range) {
  std::vector<double> slopes;
  for (int64_t n = 0; n < heads; ++n) {
    const double exponent = initial + range * static_cast<double>(n) / static_cast<double>(heads);
    check(exponent > 0, "attention.decay: initial ", initial, " and range ", range, " give head ", n,
          " the exponent ", exponent, "; gamma = 1 - 2^-exponent needs a positive one");
    slopes.push_back(-std::log(1.0 - std::exp2(-exponent)));
  }
  return slopes;
}

}  // namespace

DecayOptions read_decay(Fields fields) {
  using Kind = DecayOptions::Kind;
  DecayOptions o;
  const std::string kind = fields.choice("kind", {"fixed", "distance", "content"});
  if (kind == "fixed") {
    o.kind = Kind::fixed;
    o.initial = fields.get("initial", o.initial);
    o.range = fields.get("range", o.range);
  } else {
    o.kind = kind == "distance" ? Kind::distance : Kind::content;
    o.alpha = fields.get("alpha", o.alpha);
    if (o.kind == Kind::content) o.use_distance = fields.get("distance", true);
  }
  fields.done();
  return o;
}

Decay::Decay(const Scope& scope, const DecayOptions& its_options, int64_t dim, int64_t heads)
    : options(its_options) {
  using Kind = DecayOptions::Kind;
  if (options.kind == Kind::content)
    gate = Linear(scope, dim, heads, {.bias = true, .weight_init = truncated_normal(0.02)});
  else if (options.kind == Kind::fixed)
    slopes = Tensor::from(rmt_slopes(heads, options.initial, options.range), {heads}, scope.dtype());
  else if (options.kind == Kind::distance)
    slopes = Tensor::full({heads}, options.alpha, scope.dtype());
  if (slopes.defined()) slopes = slopes.to(scope.device());
}

Tensor Decay::gates(const Tensor& x) const { return log_sigmoid(gate(x)); }

void Decay::apply(const Tensor& x, ScoreTerms& terms) const {
  terms.slopes = slopes;
  if (options.kind != DecayOptions::Kind::content) return;
  terms.gates = gates(x);
  terms.alpha = options.alpha;
  terms.use_distance = options.use_distance;
}

Tensor Decay::matrix(const Tensor& x, Grid grid, int64_t prefix) const {
  check(options.kind != DecayOptions::Kind::none, "decay: none is configured");
  if (options.kind == DecayOptions::Kind::content)
    return content_decay(gates(x), grid, prefix, options.alpha, options.use_distance);
  return fixed_decay(slopes, grid, prefix);
}

}  // namespace tessera
