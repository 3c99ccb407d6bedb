#include "apps/training/device_step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/autograd/tape.h"
#include "engine/core/error.h"
#include "engine/ops/correct.h"
#include "engine/ops/elementwise.h"
#include "engine/optim/clip.h"
#include "models/parts/token_labels.h"

namespace tessera {

namespace {

// The labels, or a segmenter's masks, without a wait for a GPU where the host knows them.
const Tensor& labels_of(const StepBatch& batch) {
  return batch.host_labels.defined() ? batch.host_labels : batch.targets;
}

// lam at the picture's own label, the rest at that of the one mixed in. [B, K]
Tensor soft_targets(const StepBatch& batch, const Shape& shape) {
  const Tensor targets = Tensor::zeros(shape);
  const auto add = [&](const Tensor& labels, double share) {
    const std::vector<int64_t> classes = labels.integers();
    for (size_t i = 0; i < classes.size(); ++i)
      targets.data<float>()[static_cast<int64_t>(i) * shape[1] + classes[i]] += static_cast<float>(share);
  };
  const bool mixed = batch.other_labels.defined();
  add(labels_of(batch), mixed ? batch.lam : 1);
  if (mixed) add(batch.other_labels, 1 - batch.lam);
  return targets;
}

}  // namespace

DeviceStep::DeviceStep(Model& model, Optimizer& optimizer, const StepOptions& options)
    : model_(model),
      optimizer_(optimizer),
      options_(options),
      device_(optimizer.parameters().front().device()),
      correct_(Tensor::zeros({1}, DType::i64, device_)),
      norm_(Tensor::zeros({3}, DType::f64, device_)) {
  for (auto& read : reads_) read = make_read_back(device_);
  if (options.precision == Precision::bf16) compute_in_bf16();
  follow_statistics();
}

void DeviceStep::compute_in_bf16() {
  narrow_.emplace(copy_as(model_, DType::bf16));
  std::vector<std::pair<Tensor, Tensor>> pairs;
  for (const Parameter& p : model_.parameters)
    if (p.trainable) pairs.emplace_back(p.value, *narrow_->parameters.find(p.name));
  mixed_.emplace(std::move(pairs));
}

void DeviceStep::follow_statistics() {
  std::vector<Statistics::Pair> pairs;
  for (const Parameter& p : model_.parameters)
    if (p.statistic)
      pairs.push_back(
          {p.value, narrow_ ? *narrow_->parameters.find(p.name) : p.value.clone(), narrow_.has_value()});
  statistics_.emplace(std::move(pairs));
}

const Model& DeviceStep::computing() const {
  if (!narrow_) return model_;
  mixed_->narrow();
  statistics_->begin_step();
  return *narrow_;
}

void DeviceStep::start(const StepBatch& batch, double lr, Pass& pass) {
  check(started_ - finished_ < most_under_way, "step: ", most_under_way, " are under way; finish one first");
  take(batch, pass);
  // Two steps first: they make the gradients, and all that is made once (workspaces, choices of algorithms).
  if (graph_ || (options_.graph && steps_ >= 2 && record(lr, pass))) {
    replay(lr, pass);
  } else {
    compute(pass);
    step(lr);
    follow();
    ++steps_;
  }
  const std::array<Tensor, 3> numbers{norm_, loss_, correct_};
  reads_[static_cast<size_t>(started_++ % most_under_way)]->start(numbers);
}

// What a loader made on the device stands always in the same memory: the step reads it there. All else is
// copied to the step's own.
void DeviceStep::take(const StepBatch& batch, Pass& pass) {
  const Tensor &images = batch.images, &labels = batch.targets;
  const bool there = images.device() != Device::cpu;
  const bool mixed = options_.shares || model_.token_targets || batch.other_labels.defined() ||
                     batch.token_maps.defined() || soft_.defined();
  TokenTargets of_teacher;
  if (batch.token_maps.defined()) of_teacher = model_.token_targets(batch.token_maps, batch.token_views);
  const bool same = images_.defined() && images.shape() == images_.shape() &&
                    labels.shape() == labels_.shape() && labels.dtype() == labels_.dtype() &&
                    mixed == soft_.defined() &&
                    (!there || (images.raw() == images_.raw() && labels.raw() == labels_.raw()));
  if (!same) begin(batch, there, mixed);
  if (!patches_.defined() && of_teacher.patches.defined())
    patches_ = Tensor::empty(of_teacher.patches.shape(), images.dtype(), device_);
  if (!there) images_.copy_from(images);
  if (!there) labels_.copy_from(labels);
  if (patches_.defined()) {
    soft_.copy_from(of_teacher.images.to(soft_.dtype()));
    patches_.copy_from(of_teacher.patches.to(patches_.dtype()));
  } else if (mixed && !batch.shares.defined()) {
    soft_.copy_from(soft_targets(batch, soft_.shape()).to(soft_.dtype()));
  }
  draw(batch, pass);
}

void DeviceStep::begin(const StepBatch& batch, bool there, bool mixed) {
  graph_.reset();
  steps_ = 0;
  const auto own = [&](const Tensor& like) {
    return there ? like : Tensor::empty(like.shape(), like.dtype(), device_);
  };
  images_ = own(batch.images);
  labels_ = own(batch.targets);
  if (mixed)
    soft_ = batch.shares.defined()
                ? batch.shares
                : Tensor::empty({labels_.dim(0), model_.num_classes()}, images_.dtype(), device_);
  patches_ = Tensor();
  drawn_.clear();
  loss_ = Tensor();
}

void DeviceStep::draw(const StepBatch& batch, Pass& pass) {
  if (!model_.draw) return;
  for (const auto& [name, value] :
       model_.draw({{"input", batch.images}, {"target", labels_of(batch)}}, pass)) {
    Tensor& own = drawn_[name];
    if (!own.defined()) own = Tensor::empty(value.shape(), value.dtype(), device_);
    own.copy_from(value);
  }
}

void DeviceStep::compute(Pass& pass) {
  const Model& model = narrow_ ? *narrow_ : model_;
  if (mixed_) mixed_->narrow();
  statistics_->begin_step();
  model_.parameters.zero_grad();
  model.parameters.zero_grad();
  const auto own = [&](const Tensor& x) { return narrow_ ? x.to(DType::bf16) : x; };
  TensorMap inputs = drawn_;
  inputs["input"] = model.sample ? images_ : own(images_);  // of a diffusion model they are targets too
  inputs["target"] = soft_.defined() ? own(soft_) : labels_;
  if (patches_.defined()) inputs["aux_target"] = own(patches_);
  Tape tape;
  const auto [loss, logits] =
      model.training_loss(inputs, {.smoothing = options_.smoothing, .rows = images_.dim(0)}, pass);
  if (!loss_.defined()) loss_ = Tensor::empty(loss.shape(), loss.dtype(), loss.device());
  loss_.copy_from(loss.detach());
  counts_ = logits.rank() == 2;
  if (counts_) correct_.copy_from(count_correct(logits.detach(), labels_));
  // d loss / d loss = 1, but NaN where the loss is not finite: then no gradient is, and the step is left out.
  tape.backward(loss, add_scalar(scale(loss.detach(), 0), 1));
  if (mixed_) mixed_->widen_gradients();
}

void DeviceStep::step(double lr) {
  clip_on_device(optimizer_.parameters(), options_.clip,
                 options_.clip > 0 ? std::numeric_limits<double>::infinity() : largest_gradient_norm, norm_);
  optimizer_.step(lr, norm_.rows(1, 1));
}

void DeviceStep::follow() {
  statistics_->end_step(norm_.rows(1, 1));
  if (options_.average) options_.average->update(norm_.rows(1, 1));
}

bool DeviceStep::record(double lr, const Pass& pass) {
  Pass drawing = pass;
  bool counted = false;
  try {
    graph_ = record_replay(device_, [&] {
      compute(drawing);
      step(lr);
      counted = true;
      follow();
    });
    find_draws(pass, drawing);
  } catch (const Error& error) {
    note_ = error.what() + std::string("; so every operation of a step is launched by itself");
    graph_.reset();
    options_.graph = false;
  }
  if (counted) optimizer_.undo_step_count();  // nothing has run yet
  return graph_ != nullptr;
}

void DeviceStep::find_draws(const Pass& before, const Pass& after) {
  draws_ = after.keys - before.keys;
  check(2 * draws_ == after.random.state().position - before.random.state().position,
        "graph: the model draws numbers on the host that are no keys");
  std::vector<uint64_t> drawn;
  for (Pass again = before; drawn.size() < draws_;) drawn.push_back(again.key());
  drawn_as_.clear();
  for (const uint64_t key : graph_->keys()) {
    const auto at = std::find(drawn.begin(), drawn.end(), key);
    check(at != drawn.end(), "graph: a random key that the pass did not draw");
    drawn_as_.push_back(static_cast<size_t>(at - drawn.begin()));
  }
}

void DeviceStep::replay(double lr, Pass& pass) {
  std::vector<uint64_t> drawn, keys;
  while (drawn.size() < draws_) drawn.push_back(pass.key());
  for (const size_t which : drawn_as_) keys.push_back(drawn[which]);
  graph_->run(keys, [&] { optimizer_.step(lr, norm_.rows(1, 1)); });
}

StepResult DeviceStep::finish() {
  check(finished_ < started_, "step: none is under way");
  const std::vector<Tensor> numbers = reads_[static_cast<size_t>(finished_++ % most_under_way)]->finish();
  const std::vector<double> norm = numbers[0].values();
  StepResult result;
  result.note = std::exchange(note_, "");
  result.loss = numbers[1].item();
  result.gradient_norm = norm[0];
  if (counts_) result.correct = static_cast<int64_t>(numbers[2].item());
  if (!std::isfinite(norm[1])) {
    leave_out();
    result.trouble = "";
  }
  return result;
}

void DeviceStep::leave_out() {
  optimizer_.undo_step_count();
  for (; finished_ < started_; ++finished_) {  // begun since: norm_ has kept them from changing anything
    reads_[static_cast<size_t>(finished_ % most_under_way)]->finish();
    optimizer_.undo_step_count();
  }
  norm_.fill(0);
  // Who looks for the reason computes the gradients anew, perhaps not all of them: no graph knows where.
  graph_.reset();
  steps_ = 0;
}

}  // namespace tessera
