#include "apps/inspector/rounding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "apps/inspector/rounding_slack.h"
#include "engine/core/parallel.h"

namespace tessera {

namespace {

constexpr double relative_slack = 0x1p-44;
constexpr int64_t chunk = 1 << 16;

float rounded(double value) {
  return std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(value) + 0.0f;
}

void round_in_place(const Tensor& x) {
  double* data = x.data<double>();
  parallel_for(x.elements(), chunk, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) data[i] = static_cast<double>(rounded(data[i]));
  });
}

// Half the distance from the float to the next one in the direction of `value`.
double half_step(float nearest, double value) {
  const uint32_t bits = std::bit_cast<uint32_t>(nearest) & 0x7fffffffu;
  const int exponent = std::max<int>(1, static_cast<int>(bits >> 23)) - 127;
  const bool below_power =
      (bits & 0x7fffffu) == 0 && std::abs(value) < std::abs(static_cast<double>(nearest));
  return std::ldexp(1.0, exponent - (below_power ? 25 : 24));
}

// Tells what is close and what is small among `value`, whose slack is known.
void look_at(uint64_t cell, double value, double slack, Rounding& found) {
  const float nearest = rounded(value);
  if (!std::isfinite(nearest)) return;
  const double tolerance = slack + relative_slack * std::abs(value), half = half_step(nearest, value);
  if (4 * tolerance > half)
    found.small.push_back({cell, nearest});
  else if (half - std::abs(value - static_cast<double>(nearest)) <= 2 * tolerance)
    found.close.push_back({cell, (std::bit_cast<uint32_t>(nearest) & 1u) != 0});
}

// The slack of cell i is slack, or slack weights[i] where there are weights.
Rounding rounding_of(const Tensor& x, double slack, const std::vector<double>& weights = {}) {
  Rounding all{.known = true, .zero = weights.empty() ? slack : 0};
  const int64_t chunks = (x.elements() + chunk - 1) / chunk;
  std::vector<Rounding> parts(static_cast<size_t>(chunks));
  const double* data = x.data<double>();
  parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c)
      for (int64_t i = c * chunk; i < std::min(x.elements(), (c + 1) * chunk); ++i) {
        const double own = weights.empty() ? slack : slack * weights[static_cast<size_t>(i)];
        if (data[i] != 0 || (!weights.empty() && own != 0))
          look_at(static_cast<uint64_t>(i), data[i], own, parts[static_cast<size_t>(c)]);
      }
  });
  for (const Rounding& part : parts) {
    all.close.insert(all.close.end(), part.close.begin(), part.close.end());
    all.small.insert(all.small.end(), part.small.begin(), part.small.end());
  }
  return all;
}

// The error of softmax's dx_j = y_j (dy_j - sum_k dy_k y_k) is in proportion to y_j and the row's largest dy.
std::vector<double> softmax_weights(const Tensor& y, const Tensor& dy) {
  const int64_t width = y.dim(-1);
  const double *py = y.data<double>(), *pdy = dy.data<double>();
  std::vector<double> weights(static_cast<size_t>(y.elements()));
  for (int64_t at = 0; at < y.elements(); at += width) {
    double most = 0;
    for (int64_t i = at; i < at + width; ++i) most = std::max(most, std::abs(pdy[i]));
    for (int64_t i = at; i < at + width; ++i) weights[static_cast<size_t>(i)] = py[i] * most;
  }
  return weights;
}

// Whether a sum of such gradients is the same in any computation that adds them in this order.
bool is_copied(std::string_view op) {
  constexpr std::string_view ops[] = {"add",    "subtract", "permute",   "broadcast_to",
                                      "concat", "slice",    "drop_path", "mask_diagonal"};
  return std::ranges::find(ops, op) != std::end(ops);
}

bool is_float32(const Tensor& x) {
  if (x.dtype() != DType::f64) return true;
  const std::span<const double> cells(x.data<double>(), static_cast<size_t>(x.elements()));
  return std::ranges::all_of(
      cells, [](double v) { return std::isnan(v) || static_cast<double>(static_cast<float>(v)) == v; });
}

}  // namespace

RoundingScope::RoundingScope(Tape& tape)
    : tape_(tape),
      observer_([this](const ForwardEvent& event) { round_output(event); },
                [this](const BackwardEvent&) { round_next_gradient(); }) {}

void RoundingScope::round_output(const ForwardEvent& event) {
  settle_output();
  if (event.output.dtype() != DType::f64) return;
  unrounded_ = event.output.clone();
  unrounded_step_ = tape_.steps().size();  // its step, if the tape records one
  round_in_place(event.output);
}

void RoundingScope::settle_output() {
  outputs_.resize(tape_.steps().size());
  if (unrounded_.defined() && unrounded_step_ < tape_.steps().size()) {
    const Tape::Step& step = tape_.steps()[unrounded_step_];
    const double slack = slack_of_output(step.op->name, step.operands, unrounded_);
    Rounding& own = outputs_[unrounded_step_];
    if (slack > 0 || step.op->name == "softmax")
      own = rounding_of(unrounded_, slack);
    else
      own.known = true;
  }
  unrounded_ = {};
}

// A step's dy is whole when the step after it has run backward. Steps without dy do not run.
void RoundingScope::round_next_gradient() {
  const std::vector<Tape::Step>& steps = tape_.steps();
  if (gradients_.empty()) {
    next_ = steps.size();
    while (next_ > 0 && !tape_.gradient_of_step(next_ - 1).defined()) --next_;
    if (next_ == 0) return;  // a tape within the pass runs backward
    --next_;                 // the step that has run now, the loss
    settle_output();
    gradients_.resize(steps.size());
  }
  while (next_ > 0 && !tape_.gradient_of_step(next_ - 1).defined()) --next_;
  if (next_ == 0) return;
  --next_;
  gradients_[next_] = round_gradient(tape_.gradient_of_step(next_), steps[next_].output);
}

Rounding RoundingScope::round_gradient(const Tensor& gradient, int slot) {
  double slack = 0;
  std::vector<double> weights;
  bool copied = true;
  int readers = 0;
  std::optional<size_t> softmax_step;
  const std::vector<Tape::Step>& steps = tape_.steps();
  for (size_t s = steps.size(); s-- > 0;)
    for (size_t k = 0; k < steps[s].inputs.size(); ++k) {
      const Tensor dy = tape_.gradient_of_step(s);
      if (steps[s].inputs[k] != slot || !dy.defined()) continue;
      ++readers;
      slack += slack_of_gradient(steps[s].op->name, steps[s].operands, k, steps[s].result, dy);
      copied = copied && is_copied(steps[s].op->name);
      if (steps[s].op->name == "softmax") softmax_step = s;
    }
  if (readers > 1 && !copied) slack += 0x1p-50 * largest_size(gradient);
  if (readers == 1 && softmax_step) {
    weights = softmax_weights(steps[*softmax_step].result, tape_.gradient_of_step(*softmax_step));
    slack = 0x1p-48;
  }
  Rounding result = slack > 0 ? rounding_of(gradient, slack, weights) : Rounding{.known = true};
  round_in_place(gradient);
  return result;
}

Roundings RoundingScope::finish(const PassRecord& record) {
  Roundings all;
  all.values.resize(record.values().size());
  all.gradients.resize(record.values().size());
  for (size_t s = 0; s < record.steps().size(); ++s) {
    all.values[record.steps()[s].output] = outputs_.at(s);
    if (s < gradients_.size()) all.gradients[record.steps()[s].output] = gradients_[s];
  }
  for (size_t i = 0; i < record.values().size(); ++i) {
    const PassRecord::Value& value = record.values()[i];
    if (value.kind != PassRecord::Kind::leaf || !value.gradient.defined()) continue;
    for (size_t s = 0; s < record.steps().size(); ++s)
      for (size_t k = 0; k < record.steps()[s].inputs.size(); ++k)
        if (record.steps()[s].inputs[k] == i && !all.gradients[i].known)
          all.gradients[i] = round_gradient(value.gradient, tape_.steps()[s].inputs[k]);
  }
  // Of a constant that is no float, the record's float is not what the op has read.
  for (const PassRecord::Step& step : record.steps())
    for (const size_t i : step.inputs)
      if (i != PassRecord::left_out && !is_float32(record.values()[i].value)) {
        all.values[step.output].known = false;
        for (const size_t k : step.inputs)
          if (k != PassRecord::left_out) all.gradients[k].known = false;
      }
  return all;
}

}  // namespace tessera
