#include "apps/step.h"

#include <algorithm>
#include <cmath>

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

constexpr const char* not_finite_hint =
    "; the weights are as before the step. Try a lower learning rate, a longer warm-up or clip";

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const Parameters& parameters) {
  const auto groups = make_groups(trainable(parameters), config.weight_decay, config.groups);
  if (config.kind == "sgd")
    return std::make_unique<Sgd>(groups, Sgd::Options{config.momentum, config.nesterov});
  return std::make_unique<AdamW>(groups, AdamW::Options{config.beta1, config.beta2, config.eps});
}

TrainStep::TrainStep(Model& model, Optimizer& optimizer, const StepOptions& options)
    : model_(model), optimizer_(optimizer), options_(options) {
  if (norms_by_batch(model.parameters)) options_.micro_batch = 0;
}

StepResult TrainStep::operator()(const Tensor& images, const Tensor& labels, double lr, Pass& pass) {
  const int64_t rows = images.dim(0), micro = options_.micro_batch > 0 ? options_.micro_batch : rows;
  StepResult result;
  model_.parameters.zero_grad();
  for (int64_t first = 0; first < rows; first += micro) {
    const int64_t count = std::min(micro, rows - first);
    const Tensor its_labels = labels.rows(first, count);
    Tape tape;
    const auto [loss, logits] =
        model_.training_loss({{"input", images.rows(first, count)}, {"target", its_labels}},
                             {.smoothing = options_.smoothing, .rows = rows}, pass);
    result.loss += loss.item();
    if (logits.rank() == 2) result.correct += count_correct(logits, its_labels);
    check(std::isfinite(result.loss), "the loss is ", result.loss, not_finite_hint);
    tape.backward(loss);
  }
  const std::vector<Tensor>& parameters = optimizer_.parameters();
  result.gradient_norm =
      options_.clip > 0 ? clip_by_norm(parameters, options_.clip) : gradient_norm(parameters);
  check(std::isfinite(result.gradient_norm), "the gradient's norm is ", result.gradient_norm,
        not_finite_hint);
  optimizer_.step(lr);
  return result;
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
