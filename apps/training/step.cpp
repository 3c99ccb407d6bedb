#include "apps/training/step.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "apps/training/device_step.h"
#include "apps/training/number_watch.h"
#include "engine/autograd/tape.h"
#include "engine/core/replay.h"
#include "engine/ops/correct.h"
#include "engine/optim/adamw.h"
#include "engine/optim/clip.h"
#include "engine/optim/sgd.h"
#include "models/parts/token_labels.h"

namespace tessera {

namespace {

// Whether the model has batch norms, whose statistics are of the images that go through together.
bool norms_by_batch(const Parameters& parameters) {
  return std::any_of(parameters.begin(), parameters.end(), [](const Parameter& p) { return p.statistic; });
}

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
TensorMap rows_of(const Model& model, const StepBatch& batch, int64_t first, int64_t count) {
  TensorMap inputs{{"input", batch.images.rows(first, count)}, {"target", batch.targets.rows(first, count)}};
  if (batch.token_maps.defined()) {
    const auto [images, patches] =
        model.token_targets(batch.token_maps.rows(first, count), batch.token_views.rows(first, count));
    const auto alike = [&](const Tensor& x) { return x.to(batch.images.dtype()).to(batch.images.device()); };
    inputs["target"] = alike(images);
    inputs["aux_target"] = alike(patches);
  }
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
  const Device device = optimizer.parameters().front().device();
  allow_tf32(options.precision == Precision::tf32);
  if (device != Device::cpu || options.precision == Precision::bf16) {
    options_.micro_batch = 0;
    options_.graph = options.graph && device != Device::cpu;
    on_device_ = std::make_unique<DeviceStep>(model, optimizer, options_);
  }
  if (!norms_by_batch(model.parameters)) return;
  options_.micro_batch = 0;
  for (const Parameter& p : model.parameters)
    if (p.statistic) statistics_.emplace_back(p.value, p.value.clone());
}

TrainStep::~TrainStep() = default;

StepBatch StepBatch::to(Device device) const {
  StepBatch there = *this;
  for (Tensor* tensor : {&there.images, &there.targets, &there.other_labels})
    if (tensor->defined()) *tensor = tensor->to(device);
  if (there.images.dtype() == DType::bf16) there.images = there.images.to(DType::f32);
  return there;
}

StepBatch StepBatch::clone() const {
  StepBatch copy = *this;
  for (Tensor* tensor : {&copy.images, &copy.targets, &copy.other_labels, &copy.shares})
    if (tensor->defined()) *tensor = tensor->clone();
  return copy;
}

StepResult TrainStep::operator()(const StepBatch& batch, double lr, Pass& pass) {
  begin(batch, {batch, lr, pass, {}}, pass);
  return finish();
}

int TrainStep::most_under_way() const { return on_device_ ? DeviceStep::most_under_way : 1; }

const Model& TrainStep::computing() const { return on_device_ ? on_device_->computing() : model_; }

void TrainStep::start(const StepBatch& batch, double lr, Pass& pass) {
  const bool passing = most_under_way() > 1 && batch.images.device() != Device::cpu;
  begin(batch, {passing ? batch.clone() : batch, lr, pass, {}}, pass);
}

// step.batch is what is kept of the batch, should the step be left out.
void TrainStep::begin(const StepBatch& batch, Started step, Pass& pass) {
  check(std::ssize(started_) < most_under_way(), "step: ", started_.size(), " are under way already");
  if (on_device_) {
    on_device_->start(batch, step.lr, pass);
  } else {
    keep_statistics();
    step.result = on_cpu(batch, step.lr, pass);
  }
  started_.push_back(std::move(step));
}

StepResult TrainStep::finish() {
  check(!started_.empty(), "step: none is under way");
  const Started step = std::move(started_.front());
  started_.pop_front();
  StepResult result = on_device_ ? on_device_->finish() : step.result;
  if (!result.trouble) return result;
  explain(step, result);
  for (const Started& next : started_) {
    Pass again = next.before;
    on_device_->start(next.batch, next.lr, again);
  }
  return result;
}

void TrainStep::explain(const Started& step, StepResult& result) {
  *result.trouble = std::isfinite(result.loss) ? "the gradient's norm is " + text_of(result.gradient_norm)
                                               : "the loss is " + text_of(result.loss);
  if (on_device_) keep_statistics();  // which the step has left as they were, and the search moves
  *result.trouble += "; " + diagnose(step.batch.to(optimizer_.parameters().front().device()), step.before);
  restore_statistics();
}

StepResult TrainStep::on_cpu(const StepBatch& batch, double lr, Pass& pass) {
  StepResult result = gradients(batch, pass, nullptr);
  if (std::isfinite(result.loss)) {
    const std::vector<Tensor>& parameters = optimizer_.parameters();
    result.gradient_norm =
        options_.clip > 0 ? clip_by_norm(parameters, options_.clip) : gradient_norm(parameters);
    if (std::isfinite(result.gradient_norm) &&
        (options_.clip > 0 || result.gradient_norm < largest_gradient_norm)) {
      optimizer_.step(lr);
      if (options_.average) options_.average->update();
      return result;
    }
  }
  result.trouble = "";
  return result;
}

StepResult TrainStep::gradients(const StepBatch& batch, Pass& pass, NumberWatch* watch) {
  const int64_t rows = batch.images.dim(0), micro = options_.micro_batch > 0 ? options_.micro_batch : rows;
  StepResult result;
  model_.parameters.zero_grad();
  for (int64_t first = 0; first < rows && std::isfinite(result.loss); first += micro) {
    const int64_t count = std::min(micro, rows - first);
    const TensorMap inputs = rows_of(model_, batch, first, count);
    Tape tape;
    const auto [loss, logits] =
        model_.training_loss(inputs, {.smoothing = options_.smoothing, .rows = rows}, pass);
    result.loss += loss.item();
    if (logits.rank() == 2)
      result.correct +=
          static_cast<int64_t>(count_correct(logits.detach(), batch.targets.rows(first, count)).item());
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

}  // namespace tessera
