#include "apps/device_step.h"

#include <algorithm>
#include <cmath>

#include "engine/autograd/tape.h"
#include "engine/core/error.h"
#include "engine/ops/correct.h"
#include "engine/ops/elementwise.h"
#include "engine/optim/clip.h"

namespace tessera {

namespace {

// lam at the picture's own label, the rest at that of the one mixed in. [B, K]
Tensor soft_targets(const StepBatch& batch, const Shape& shape) {
  const Tensor targets = Tensor::zeros(shape);
  const auto add = [&](const Tensor& labels, double share) {
    const std::vector<int64_t> classes = labels.integers();
    for (size_t i = 0; i < classes.size(); ++i)
      targets.data<float>()[static_cast<int64_t>(i) * shape[1] + classes[i]] += static_cast<float>(share);
  };
  const bool mixed = batch.other_labels.defined();
  add(batch.targets, mixed ? batch.lam : 1);
  if (mixed) add(batch.other_labels, 1 - batch.lam);
  return targets;
}

}  // namespace

DeviceStep::DeviceStep(Model& model, Optimizer& optimizer, const StepOptions& options)
    : model_(model), optimizer_(optimizer), options_(options) {
  if (options.precision == Precision::bf16) compute_in_bf16();
}

void DeviceStep::compute_in_bf16() {
  const Device device = optimizer_.parameters().front().device();
  narrow_.emplace(build(model_.config, {.dtype = DType::bf16, .device = device}));
  std::vector<std::pair<Tensor, Tensor>> pairs;
  for (const Parameter& p : model_.parameters) {
    check(!p.name.ends_with("running_mean"), "step: batch norm keeps its statistics in f32; train ",
          "this model with --precision f32 or tf32");
    const Tensor& narrow = *narrow_->parameters.find(p.name);
    if (p.trainable)
      pairs.emplace_back(p.value, narrow);
    else
      narrow.copy_from(p.value.to(DType::bf16));
  }
  mixed_.emplace(std::move(pairs));
}

StepResult DeviceStep::operator()(const StepBatch& batch, double lr, Pass& pass) {
  take(batch);
  if (graph_) {
    replay(lr, pass);
    return read();
  }
  // Two steps first: they make the gradients, and all that is made once (workspaces, choices of algorithms).
  if (options_.graph && steps_ >= 2) {
    record(lr, pass);
    replay(lr, pass);
  } else {
    compute(pass);
    update(lr);
    ++steps_;
  }
  return read();
}

void DeviceStep::take(const StepBatch& batch) {
  const Tensor &images = batch.images, &labels = batch.targets;
  const bool mixed = batch.other_labels.defined() || soft_.defined();
  const bool same = images_.defined() && images.shape() == images_.shape() &&
                    labels.shape() == labels_.shape() && labels.dtype() == labels_.dtype() &&
                    mixed == soft_.defined();
  if (!same) {
    graph_.reset();
    steps_ = 0;
    const Device device = optimizer_.parameters().front().device();
    images_ = Tensor::empty(images.shape(), images.dtype(), device);
    labels_ = Tensor::empty(labels.shape(), labels.dtype(), device);
    if (mixed) soft_ = Tensor::empty({labels.dim(0), model_.num_classes()}, images.dtype(), device);
    norm_ = Tensor::zeros({2}, DType::f64, device);
    correct_ = Tensor::zeros({1}, DType::i64, device);
    loss_ = Tensor();
  }
  images_.copy_from(images);
  labels_.copy_from(labels);
  if (mixed) soft_.copy_from(soft_targets(batch, soft_.shape()).to(soft_.dtype()));
}

void DeviceStep::compute(Pass& pass) {
  const Model& model = narrow_ ? *narrow_ : model_;
  if (mixed_) mixed_->narrow();
  model_.parameters.zero_grad();
  model.parameters.zero_grad();
  const auto own = [&](const Tensor& x) { return narrow_ ? x.to(DType::bf16) : x; };
  Tape tape;
  const auto [loss, logits] =
      model.training_loss({{"input", own(images_)}, {"target", soft_.defined() ? own(soft_) : labels_}},
                          {.smoothing = options_.smoothing, .rows = images_.dim(0)}, pass);
  if (!loss_.defined()) loss_ = Tensor::empty(loss.shape(), loss.dtype(), loss.device());
  loss_.copy_from(loss.detach());
  counts_ = logits.rank() == 2;
  if (counts_) correct_.copy_from(count_correct(logits.detach(), labels_));
  // d loss / d loss = 1, but NaN where the loss is not finite: then no gradient is, and the step is left out.
  tape.backward(loss, add_scalar(scale(loss.detach(), 0), 1));
  if (mixed_) mixed_->widen_gradients();
}

void DeviceStep::update(double lr) {
  clip_on_device(optimizer_.parameters(), options_.clip,
                 options_.clip > 0 ? std::numeric_limits<double>::infinity() : largest_gradient_norm, norm_);
  optimizer_.step(lr, norm_.rows(1, 1));
}

void DeviceStep::record(double lr, const Pass& pass) {
  Pass drawing = pass;
  graph_ = record_replay(images_.device(), [&] {
    compute(drawing);
    update(lr);
  });
  optimizer_.uncount();  // nothing has run yet
  draws_ = (drawing.random.state().position - pass.random.state().position) / 2;
  std::vector<uint64_t> drawn;
  for (Pass again = pass; drawn.size() < draws_;) drawn.push_back(again.key());
  drawn_as_.clear();
  for (const uint64_t key : graph_->keys()) {
    const auto at = std::find(drawn.begin(), drawn.end(), key);
    check(at != drawn.end(), "step: a random key that the pass did not draw; use --no-graph");
    drawn_as_.push_back(static_cast<size_t>(at - drawn.begin()));
  }
}

void DeviceStep::replay(double lr, Pass& pass) {
  std::vector<uint64_t> drawn, keys;
  while (drawn.size() < draws_) drawn.push_back(pass.key());
  for (const size_t which : drawn_as_) keys.push_back(drawn[which]);
  graph_->run(keys, [&] { update(lr); });
}

StepResult DeviceStep::read() {
  StepResult result;
  const std::vector<double> norm = norm_.values();
  result.loss = loss_.item();
  result.gradient_norm = norm[0];
  if (counts_) result.correct = static_cast<int64_t>(correct_.item());
  if (std::isfinite(norm[1])) return result;
  optimizer_.uncount();
  // Who looks for the reason computes the gradients anew, perhaps not all of them: no graph knows where.
  graph_.reset();
  steps_ = 0;
  result.trouble = "";
  return result;
}

}  // namespace tessera
