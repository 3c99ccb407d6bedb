#include "models/parts/decay.h"

#include <cmath>
#include <vector>

#include "engine/autograd/observe.h"
#include "engine/autograd/tape.h"
#include "engine/ops/activations.h"
#include "models/parts/decay_watch.h"

namespace tessera {

namespace {

// f(e_n) for each head n, where e_n = initial + range n / heads and RMT's rate is gamma_n = 1 - 2^-e_n.
template <class F> std::vector<double> of_rates(int64_t heads, double initial, double range, F f) {
  std::vector<double> values;
  for (int64_t n = 0; n < heads; ++n) {
    const double exponent = initial + range * static_cast<double>(n) / static_cast<double>(heads);
    check(exponent > 0, "attention.decay: initial ", initial, " and range ", range, " give head ", n,
          " the exponent ", exponent, "; gamma = 1 - 2^-exponent needs a positive one");
    values.push_back(f(exponent));
  }
  return values;
}

Linear make_gate(const Scope& scope, const DecayOptions& o, int64_t dim, int64_t heads) {
  if (!o.rmt_start) return Linear(scope, dim, heads, {.weight_init = truncated_normal(0.02)});
  const std::vector<double> start =  // log(gamma / (1 - gamma))
      of_rates(heads, o.initial, o.range, [](double exponent) { return std::log(std::exp2(exponent) - 1); });
  return Linear(scope, dim, heads,
                {.weight_init = constant(0), .bias_init = [start](const Tensor& bias, Random&) {
                   bias.copy_from(Tensor::from(start, bias.shape(), bias.dtype()).to(bias.device()));
                 }});
}

}  // namespace

DecayOptions read_decay(Fields fields) {
  using Kind = DecayOptions::Kind;
  DecayOptions o;
  const std::string kind = fields.choice("kind", {"fixed", "distance", "content"});
  o.kind = kind == "fixed" ? Kind::fixed : kind == "distance" ? Kind::distance : Kind::content;
  if (o.kind != Kind::fixed) o.alpha = fields.get("alpha", o.alpha);
  if (o.kind == Kind::content) {
    o.use_distance = fields.get("distance", true);
    o.rmt_start = fields.choice("start", {"zero", "rmt"}, "zero") == "rmt";
  }
  if (o.kind == Kind::fixed || o.rmt_start) {
    o.initial = fields.get("initial", o.initial);
    o.range = fields.get("range", o.range);
  }
  fields.done();
  return o;
}

Decay::Decay(const Scope& scope, const DecayOptions& its_options, int64_t dim, int64_t heads)
    : options(its_options) {
  using Kind = DecayOptions::Kind;
  if (options.kind == Kind::content)
    gate = make_gate(scope, options, dim, heads);
  else if (options.kind == Kind::fixed)
    slopes = Tensor::from(of_rates(heads, options.initial, options.range,
                                   [](double exponent) { return -std::log(1 - std::exp2(-exponent)); }),
                          {heads}, scope.dtype());
  else if (options.kind == Kind::distance)
    slopes = Tensor::full({heads}, options.alpha, scope.dtype());
  if (slopes.defined()) slopes = slopes.to(scope.device());
}

Tensor Decay::gates(const Tensor& x) const {
  const ModuleScope here(gate.path);
  const Tensor z = gate(x);
  name_value(z, "linear");
  const Tensor g = log_sigmoid(z);
  name_value(g, "log_sigmoid");
  return g;
}

void Decay::apply(const Tensor& x, ScoreTerms& terms) const {
  if (options.kind != DecayOptions::Kind::none) DecayWatch::tell(*this, x);
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
