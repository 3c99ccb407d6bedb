#include "apps/step.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "apps/number_watch.h"
#include "engine/autograd/tape.h"
#include "engine/optim/adamw.h"
#include "engine/optim/clip.h"
#include "engine/optim/sgd.h"

namespace tessera {

namespace {

// Whether the model has batch norms, whose statistics are of the images that go through together.
bool norms_by_batch(const Parameters& parameters) {
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const Parameter& p) { return p.name.ends_with("running_mean"); });
}

// A gradient whose square is no float any more would make AdamW's second moment infinite for good.
constexpr double largest_norm = 1e18;

std::string text_of(double x) { return std::isnan(x) ? "nan" : fmt::format("{:.3g}", x); }  // no "-nan"

std::string largest_gradient(const Parameters& parameters) {
  std::string name;
  double largest = -1;
  for (const Parameter& p : parameters) {
    if (!p.trainable || !p.value.grad().defined()) continue;
    const double norm = gradient_norm({p.value});
    if (norm > largest) name = p.name;
    largest = std::max(norm, largest);
  }
  return fmt::format("the largest gradient is that of {}, of norm {}", name, text_of(largest));
}

// Images first .. first + count - 1 and their targets, as Model::training_loss takes them.
TensorMap rows_of(const StepBatch& batch, int64_t first, int64_t count) {
  TensorMap inputs{{"input", batch.images.rows(first, count)}, {"target", batch.targets.rows(first, count)}};
  if (batch.other_labels.defined()) {
    inputs["target_b"] = batch.other_labels.rows(first, count);
    inputs["lam"] = Tensor::from({batch.lam}, {}, DType::f64);
  }
  return inputs;
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const Parameters& parameters) {
  const auto groups = make_groups(trainable(parameters), config.weight_decay, config.groups);
  if (config.kind == "sgd")
    return std::make_unique<Sgd>(groups, Sgd::Options{config.momentum, config.nesterov});
  return std::make_unique<AdamW>(groups, AdamW::Options{config.beta1, config.beta2, config.eps});
}

TrainStep::TrainStep(Model& model, Optimizer& optimizer, const StepOptions& options)
    : model_(model), optimizer_(optimizer), options_(options) {
  if (!norms_by_batch(model.parameters)) return;
  options_.micro_batch = 0;
  for (const Parameter& p : model.parameters)
    if (!p.trainable) statistics_.emplace_back(p.value, p.value.clone());
}

StepResult TrainStep::operator()(const StepBatch& batch, double lr, Pass& pass) {
  const Pass before = pass;
  keep_statistics();
  StepResult result = gradients(batch, pass, nullptr);
  if (std::isfinite(result.loss)) {
    const std::vector<Tensor>& parameters = optimizer_.parameters();
    result.gradient_norm =
        options_.clip > 0 ? clip_by_norm(parameters, options_.clip) : gradient_norm(parameters);
    if (std::isfinite(result.gradient_norm) && (options_.clip > 0 || result.gradient_norm < largest_norm)) {
      optimizer_.step(lr);
      return result;
    }
    result.trouble = "the gradient's norm is " + text_of(result.gradient_norm);
  } else {
    result.trouble = "the loss is " + text_of(result.loss);
  }
  *result.trouble += "; " + diagnose(batch, before);
  restore_statistics();
  return result;
}

StepResult TrainStep::gradients(const StepBatch& batch, Pass& pass, NumberWatch* watch) {
  const int64_t rows = batch.images.dim(0), micro = options_.micro_batch > 0 ? options_.micro_batch : rows;
  StepResult result;
  model_.parameters.zero_grad();
  for (int64_t first = 0; first < rows && std::isfinite(result.loss); first += micro) {
    const int64_t count = std::min(micro, rows - first);
    const TensorMap inputs = rows_of(batch, first, count);
    Tape tape;
    const auto [loss, logits] =
        model_.training_loss(inputs, {.smoothing = options_.smoothing, .rows = rows}, pass);
    result.loss += loss.item();
    if (logits.rank() == 2) result.correct += count_correct(logits, inputs.at("target"));
    if (!std::isfinite(result.loss)) break;
    if (watch) watch->follow(tape, loss);
    tape.backward(loss);
  }
  return result;
}

std::string TrainStep::diagnose(const StepBatch& batch, Pass pass) {
  if (const auto bad = not_finite(batch.images)) return fmt::format("the images hold bad numbers: {}", *bad);
  if (const auto bad = first_not_finite(trainable(model_.parameters)))
    return "a weight was bad before the step: " + *bad;
  NumberWatch watch(model_.parameters);
  gradients(batch, pass, &watch);
  return watch.found() ? "first, " + *watch.found() : largest_gradient(model_.parameters);
}

void TrainStep::keep_statistics() const {
  for (const auto& [value, kept] : statistics_) kept.copy_from(value);
}

void TrainStep::restore_statistics() const {
  for (const auto& [value, kept] : statistics_) value.copy_from(kept);
}

int64_t count_correct(const Tensor& logits, const Tensor& labels) {
  const Tensor x = logits.to(Device::cpu).to(DType::f32), y = labels.to(Device::cpu);
  const int64_t classes = x.dim(1);
  int64_t correct = 0;
  for (int64_t i = 0; i < x.dim(0); ++i) {
    const float* row = x.data<float>() + i * classes;
    correct += std::max_element(row, row + classes) - row == y.data<int64_t>()[i];
  }
  return correct;
}

}  // namespace tessera
