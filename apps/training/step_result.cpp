// A step's result is read here, and the reason is sought where the step was left out.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/training/layer_watch.h"
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

StepResult TrainStep::finish() {
  check(!started_.empty(), "step: none is under way");
  const Started step = std::move(started_.front());
  started_.pop_front();
  StepResult result = read_result();
  if (!result.trouble && step.watch) result.layers = step.watch->figures();
  if (!result.trouble) return result;
  explain(step, result);
  for (std::deque<Started> again = std::exchange(started_, {}); Started & next : again) {
    Pass pass = next.before;
    const StepBatch batch = next.batch;
    begin(batch, std::move(next), pass);
  }
  return result;
}

StepResult TrainStep::read_result() {
  const std::vector<Tensor> numbers = reads_[static_cast<size_t>(finished_++ % most_under_way())]->finish();
  const std::vector<double> norm = numbers[0].values();
  StepResult result;
  result.note = std::exchange(note_, "");
  result.gradient_norm = norm[0];
  for (const double loss : numbers[1].values())
    if (std::isfinite(result.loss)) result.loss += loss;
  if (counts_)
    for (const int64_t correct : numbers[2].integers()) result.correct += correct;
  if (!std::isfinite(norm[1])) {
    forget_steps_after_trouble();
    result.trouble = "";
  }
  return result;
}

// The steps begun since have changed nothing, as norm_ has kept them from it; they are begun again.
void TrainStep::forget_steps_after_trouble() {
  optimizer_.undo_step_count();
  for (; finished_ < begun_; ++finished_) {
    reads_[static_cast<size_t>(finished_ % most_under_way())]->finish();
    optimizer_.undo_step_count();
  }
  norm_.fill(0);
  // The search for the reason computes gradients anew, perhaps not all of them, which no graph knows.
  recorded_.reset();
  launched_ = 0;
}

void TrainStep::explain(const Started& step, StepResult& result) const {
  std::vector<std::pair<Tensor, Tensor>> statistics;  // the search moves them
  for (const Parameter& p : model_.parameters)
    if (p.statistic) statistics.emplace_back(p.value, p.value.clone());
  result.trouble = std::isfinite(result.loss) ? "the gradient's norm is " + text_of(result.gradient_norm)
                                              : "the loss is " + text_of(result.loss);
  const std::optional<std::string> cause = find_cause(step.batch.to(device_), step.before);
  for (const auto& [value, before] : statistics) value.copy_from(before);
  *result.trouble += "; ";
  for (const std::string& found : gather(ranks_, cause.value_or("")))
    if (!found.empty()) return void(*result.trouble += found);
  *result.trouble += largest_gradient(model_.parameters);
}

// The images with zeros in place of those that other ranks compute.
Tensor TrainStep::own_pixels(const StepBatch& batch) const {
  const auto [first, count] = own_images(batch.images.dim(0));
  if (count == batch.images.dim(0)) return batch.images;
  const Tensor images = Tensor::zeros(batch.images.shape(), batch.images.dtype(), batch.images.device());
  if (count > 0) images.rows(first, count).copy_from(batch.images.rows(first, count));
  return images;
}

// Computes this rank's part of the step once more, in f32 and op by op, until a number is not finite.
std::optional<std::string> TrainStep::find_cause(const StepBatch& batch, Pass pass) const {
  const int64_t images = batch.images.dim(0);
  const std::vector<MicroBatch> parts = cut_batch(images, micro_batch_);
  if (const auto bad = not_finite(own_pixels(batch)))
    return fmt::format("the images hold bad numbers: {}", *bad);
  if (const auto bad = first_not_finite(trainable(model_.parameters)))
    return "a weight was bad before the step: " + *bad;
  NumberWatch watch(model_.parameters);
  model_.parameters.zero_grad();
  bool ended = false;
  each_own_part(parts, pass, [&](const MicroBatch& part, Pass& its) {
    if (ended) return;
    Tape tape;
    const Tensor loss = model_
                            .training_loss(inputs_of(model_, batch, part),
                                           {.smoothing = options_.smoothing, .rows = images}, its)
                            .loss;
    ended = !std::isfinite(loss.item());
    if (ended) return;
    watch.watch_backward(tape, loss);
    tape.backward(loss);
  });
  if (watch.found()) return "first, " + *watch.found();
  return std::nullopt;
}

}  // namespace tessera
