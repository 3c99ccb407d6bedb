#include "models/parts/decay.h"

#include <cmath>
#include <vector>

#include "engine/ops/activations.h"

namespace tessera {

namespace {

Decay::Kind read_kind(const std::string& kind) {
  if (kind == "fixed") return Decay::Kind::fixed;
  if (kind == "distance") return Decay::Kind::distance;
  if (kind == "content") return Decay::Kind::content;
  fail("attention.decay: unknown kind '", kind, "'", did_you_mean(kind, {"fixed", "distance", "content"}));
}

// -log(gamma_n) of RMT's rates.
std::vector<double> rmt_slopes(int64_t heads, double initial, double range) {
  std::vector<double> slopes;
  for (int64_t n = 0; n < heads; ++n) {
    const double exponent = initial + range * static_cast<double>(n) / static_cast<double>(heads);
    slopes.push_back(-std::log(1.0 - std::exp2(-exponent)));
  }
  return slopes;
}

}  // namespace

Decay::Decay(const Scope& scope, const Json& options, int64_t dim, int64_t heads) {
  if (options.is_null()) return;
  Fields fields(options, "attention.decay");
  kind = read_kind(fields.required<std::string>("kind"));
  std::vector<double> steps;
  if (kind == Kind::fixed) {
    const double initial = fields.get("initial", 2.0), range = fields.get("range", 4.0);
    check(initial > 0 && initial + range > 0, "attention.decay: initial ", initial, " and range ", range,
          " make a head's score grow or vanish; initial + range * n / heads must stay above 0");
    steps = rmt_slopes(heads, initial, range);
  } else {
    alpha = fields.get("alpha", 1.0);
    if (kind == Kind::distance) steps.assign(static_cast<size_t>(heads), alpha);
    else use_distance = fields.get("distance", true);
  }
  fields.done();
  if (kind == Kind::content) gate = Linear(scope, dim, heads, {.bias = true, .weight_init = truncated_normal(0.02)});
  else slopes = Tensor::from(steps, {heads}, scope.dtype()).to(scope.device());
}

Tensor Decay::gates(const Tensor& x) const { return log_sigmoid(gate(x)); }

void Decay::apply(const Tensor& x, ScoreTerms& terms) const {
  if (kind == Kind::none) return;
  if (kind != Kind::content) {
    terms.slopes = slopes;
    return;
  }
  terms.gates = gates(x);
  terms.alpha = alpha;
  terms.use_distance = use_distance;
}

Tensor Decay::matrix(const Tensor& x, Grid grid, int64_t prefix) const {
  check(kind != Kind::none, "decay: none is configured");
  if (kind == Kind::content) return content_decay(gates(x), grid, prefix, alpha, use_distance);
  return fixed_decay(slopes, grid, prefix);
}

}  // namespace tessera
