// Why a step was left out.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "apps/training/number_watch.h"
#include "apps/training/step.h"
#include "engine/autograd/tape.h"
#include "engine/optim/clip.h"

namespace tessera {

namespace {

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

}  // namespace

void TrainStep::explain(const Started& step, StepResult& result) const {
  std::vector<std::pair<Tensor, Tensor>> statistics;  // the search moves them
  for (const Parameter& p : model_.parameters)
    if (p.statistic) statistics.emplace_back(p.value, p.value.clone());
  result.trouble = std::isfinite(result.loss) ? "the gradient's norm is " + text_of(result.gradient_norm)
                                              : "the loss is " + text_of(result.loss);
  *result.trouble += "; " + diagnose(step.batch.to(device_), step.before);
  for (const auto& [value, before] : statistics) value.copy_from(before);
}

// Computes the step once more, in f32 and op by op, until a number is not finite.
std::string TrainStep::diagnose(const StepBatch& batch, Pass pass) const {
  if (const auto bad = not_finite(batch.images)) return fmt::format("the images hold bad numbers: {}", *bad);
  if (const auto bad = first_not_finite(trainable(model_.parameters)))
    return "a weight was bad before the step: " + *bad;
  NumberWatch watch(model_.parameters);
  model_.parameters.zero_grad();
  const int64_t images = batch.images.dim(0);
  for (const MicroBatch& part : cut_batch(images, micro_batch_)) {
    Tape tape;
    const Tensor loss = model_
                            .training_loss(inputs_of(model_, batch, part),
                                           {.smoothing = options_.smoothing, .rows = images}, pass)
                            .loss;
    if (!std::isfinite(loss.item())) break;
    watch.watch_backward(tape, loss);
    tape.backward(loss);
  }
  return watch.found() ? "first, " + *watch.found() : largest_gradient(model_.parameters);
}

}  // namespace tessera
