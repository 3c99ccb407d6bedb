#include "apps/training/step.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "apps/training/gpu_peers.h"
#include "apps/training/layer_watch.h"
#include "apps/training/leaf_arrivals.h"
#include "engine/autograd/tape.h"
#include "engine/core/error.h"
#include "engine/ops/correct.h"
#include "engine/ops/elementwise.h"
#include "engine/optim/adamw.h"
#include "engine/optim/clip.h"
#include "engine/optim/sgd.h"

namespace tessera {

namespace {

// The size of micro-batches where the options leave it open.
int64_t usual_micro_batch(const Model& model, const StepOptions& options, Device device) {
  const bool whole = has_batch_norm(model) && options.batch_norm == BatchNormStatistics::batch;
  return whole || device != Device::cpu ? 0 : cpu_micro_batch;
}

DType computes_in(const Model& model, Precision precision) {
  return precision == Precision::bf16 ? DType::bf16 : trainable(model.parameters).front().second.dtype();
}

std::vector<Tensor> leaves_of(const Model& model) {
  std::vector<Tensor> leaves;
  for (const auto& [name, value] : trainable(model.parameters)) leaves.push_back(value);
  return leaves;
}

// The keys that a pass drew between two states of it.
std::vector<uint64_t> keys_between(Pass before, const Pass& after) {
  const uint64_t count = after.keys - before.keys;
  check(2 * count == after.random.state().position - before.random.state().position,
        "graph: the model draws numbers on the host that are no keys");
  std::vector<uint64_t> keys;
  while (keys.size() < count) keys.push_back(before.key());
  return keys;
}

MixedWeights pair_weights(const Model& wide, const Model& narrow) {
  std::vector<std::pair<Tensor, Tensor>> pairs;
  for (const Parameter& p : wide.parameters)
    if (p.trainable) pairs.emplace_back(p.value, *narrow.parameters.find(p.name));
  return MixedWeights(std::move(pairs));
}

// A bf16 copy moves running statistics of its own; the model itself moves its own, of which copies are kept.
Statistics pair_statistics(const Model& model, const std::optional<Model>& narrow) {
  std::vector<Statistics::Pair> pairs;
  for (const Parameter& p : model.parameters)
    if (p.statistic)
      pairs.push_back(
          {p.value, narrow ? *narrow->parameters.find(p.name) : p.value.clone(), narrow.has_value()});
  return Statistics(std::move(pairs));
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const Parameters& parameters) {
  const auto groups = make_groups(trainable(parameters), config.weight_decay, config.groups);
  if (config.kind == "sgd")
    return std::make_unique<Sgd>(groups, Sgd::Options{config.momentum, config.nesterov});
  return std::make_unique<AdamW>(groups, AdamW::Options{config.beta1, config.beta2, config.eps});
}

void check_step_options(const Model& model, const StepOptions& options, int64_t batch) {
  const int64_t micro = options.micro_batch.value_or(0);
  check(micro >= 0, "train: micro_batch is ", micro, ", wanted 0 (the whole batch) or more");
  const bool by_batch = options.batch_norm == BatchNormStatistics::batch, normed = has_batch_norm(model);
  check(by_batch || normed,
        "train: batch_norm is \"micro_batch\", but the model has no batch norm; leave the key out");
  check(!by_batch || !normed || micro == 0 || micro >= batch, "train: batch_norm is \"batch\": the model's ",
        "batch norms take the statistics of all ", batch, " images, which cannot go through in parts of ",
        micro, " (micro_batch); give micro_batch=0 to send the whole batch through at once, or ",
        "batch_norm=micro_batch to take the statistics of each part");
  const Device device = model.parameters.begin()->value.device();
  check(options.precision != Precision::tf32 || device != Device::cpu,
        "train: precision tf32 is of a GPU's products; on the CPU take f32 or bf16");
}

TrainStep::TrainStep(Model& model, Optimizer& optimizer, const StepOptions& options)
    : model_(model),
      optimizer_(optimizer),
      options_(options),
      device_(optimizer.parameters().front().device()),
      ranks_(options.ranks ? *options.ranks : one_rank()),
      peers_(join_gpus(ranks_, device_)),
      gradients_(leaves_of(model), ranks_, GradientSum::usual_bucket, peers_.get()),
      inputs_(model, device_, computes_in(model, options.precision), options.shares),
      micro_batch_(options.micro_batch.value_or(usual_micro_batch(model, options, device_))),
      norm_(Tensor::zeros({3}, DType::f64, device_)) {
  allow_tf32(options.precision == Precision::tf32);
  const bool on_device = ranks_.alone() || (peers_ && !has_batch_norm(model));
  options_.graph = options.graph && device_ != Device::cpu && on_device;
  if (device_ != Device::cpu && !ranks_.alone() && !peers_)
    note_ =
        "gradients travel over the host's memory; for NCCL give each rank a GPU of its own, and build where "
        "libnccl-dev is installed";
  for (auto& read : reads_) read = make_read_back(device_);
  if (options.precision == Precision::bf16) {
    narrow_.emplace(copy_as(model_, DType::bf16));
    mixed_.emplace(pair_weights(model_, *narrow_));
    for (const auto& [name, value] : trainable(model_.parameters))
      narrow_leaves_.push_back(*narrow_->parameters.find(name));
  }
  statistics_.emplace(pair_statistics(model_, narrow_));
  running_.emplace(computing_model(), ranks_);
}

TrainStep::~TrainStep() = default;

Share TrainStep::own_images(int64_t images) const {
  const std::vector<MicroBatch> parts = cut_batch(images, micro_batch_);
  if (ranks_.alone() || parts.size() == 1) return {0, images};
  const Share own = share_of(std::ssize(parts), ranks_);
  if (own.count == 0) return {};
  const int64_t first = parts[static_cast<size_t>(own.first)].first;
  const MicroBatch& last = parts[static_cast<size_t>(own.end() - 1)];
  return {first, last.first + last.count - first};
}

const Model& TrainStep::evaluation_model() const {
  if (!narrow_) return model_;
  mixed_->narrow();
  statistics_->begin_step();
  return *narrow_;
}

StepResult TrainStep::operator()(const StepBatch& batch, double lr, Pass& pass) {
  begin(batch, {batch, lr, pass}, pass);
  return finish();
}

void TrainStep::start(const StepBatch& batch, double lr, Pass& pass, bool watched) {
  const bool overwritten = batch.images.device() != Device::cpu;  // perhaps, before the step is finished
  begin(batch, {overwritten ? batch.clone() : batch, lr, pass, watched}, pass);
}

// step.batch is what is kept of the batch, to explain why a step is left out or to repeat it.
void TrainStep::begin(const StepBatch& batch, Started step, Pass& pass) {
  check(begun_ - finished_ < most_under_way(), "step: ", most_under_way(),
        " are under way; finish one first");
  cut(batch.images.dim(0));
  bool moved = !inputs_.set(batch, parts_);
  if (options_.graph && peers_) moved = largest_of(ranks_, moved) != 0;  // all replay the step, or none
  if (moved) {
    recorded_.reset();
    launched_ = 0;
  }
  // Two steps are launched first: they make the gradients and all else that is made once (workspaces, choices
  // of algorithms).
  step.watch = watch_ = step.watched ? std::make_shared<LayerWatch>(model_) : nullptr;
  if (!watch_ && (recorded_ || (can_record() && launched_ >= 2 && record(step.lr, pass)))) {
    replay(step.lr, pass);
  } else {
    compute(pass, false);
    if (watch_) watch_->look_at_gradients();
    update(step.lr);
    if (watch_) watch_->look_at_update();
    watch_ = nullptr;
    ++launched_;
  }
  const std::array<Tensor, 3> numbers{norm_, losses_, correct_};
  reads_[static_cast<size_t>(begun_++ % most_under_way())]->start(numbers);
  started_.push_back(std::move(step));
}

void TrainStep::cut(int64_t images) {
  check_step_options(model_, options_, images);
  const size_t before = parts_.size();
  parts_ = cut_batch(images, micro_batch_);
  if (parts_.size() == before) return;
  losses_ = Tensor();
  correct_ = Tensor::zeros({std::ssize(parts_)}, DType::i64, device_);
  keys_.assign(parts_.size(), 0);
}

void TrainStep::each_own_part(const std::vector<MicroBatch>& parts, Pass& pass,
                              const std::function<void(const MicroBatch&, Pass&)>& f) const {
  if (parts.size() == 1) return f(parts.front(), pass);  // every rank computes it
  const Random streams = pass.random.split(pass.random.bits64());
  const Share own = share_of(std::ssize(parts), ranks_);
  for (int64_t part = own.first; part < own.end(); ++part) {
    Pass its = pass;
    its.random = streams.split(static_cast<uint64_t>(part));
    f(parts[static_cast<size_t>(part)], its);
  }
}

std::vector<uint64_t> TrainStep::compute(Pass& pass, bool recording) {
  std::vector<uint64_t> drawn;
  if (mixed_) mixed_->narrow();
  statistics_->begin_step();
  const auto parts = std::ssize(parts_);
  gradients_.begin(parts);
  if (parts > 1) running_->begin(parts);
  each_own_part(parts_, pass, [&](const MicroBatch& part, Pass& its) {
    if (!recording) inputs_.draw(part, its);
    const Pass before = its;
    compute_part(part, its);
    keys_[static_cast<size_t>(part.index)] = its.keys - before.keys;
    if (recording) std::ranges::copy(keys_between(before, its), std::back_inserter(drawn));
  });
  gradients_.finish(recording);
  if (parts > 1) running_->finish();
  if (!ranks_.alone() && parts > 1) share_results();
  return drawn;
}

void TrainStep::compute_part(const MicroBatch& part, Pass& pass) {
  const Model& model = computing_model();
  model_.parameters.zero_grad();
  if (narrow_) narrow_->parameters.zero_grad();
  if (parts_.size() > 1) running_->begin_part();
  const LossOptions options{.smoothing = options_.smoothing,
                            .rows = parts_.back().first + parts_.back().count};
  Tape tape;
  std::optional<LayerWatch::Part> watched;
  if (watch_) watched.emplace(*watch_, tape);
  const auto [loss, logits] = model.training_loss(inputs_.of(part), options, pass);
  if (watched) watched->end_forward();
  if (!losses_.defined()) losses_ = Tensor::zeros({std::ssize(parts_)}, loss.dtype(), device_);
  losses_.rows(part.index, 1).copy_from(loss.detach());
  counts_ = logits.rank() == 2;
  if (counts_)
    correct_.rows(part.index, 1).copy_from(count_correct(logits.detach(), inputs_.targets_of(part)));
  // d loss / d loss = 1, but NaN where the loss is not finite: then no gradient is, and the step is left out.
  const Tensor one = add_scalar(scale(loss.detach(), 0), 1);
  const auto sending = send_early(part.index, tape);
  tape.backward(loss, one);
  if (mixed_ && !sending) hand_over_gradients();
  gradients_.add(part.index);
  if (parts_.size() > 1) running_->end_part(part.index);
}

// The gradients of a single micro-batch are read where they lie, unless clipping writes to them.
void TrainStep::hand_over_gradients() const {
  if (parts_.size() == 1 && options_.clip == 0)
    mixed_->lend_gradients();
  else
    mixed_->widen_gradients();
}

// What ranks say to each other over the host cannot be recorded: of a rank without a micro-batch too.
bool TrainStep::can_record() const {
  return options_.graph && (ranks_.alone() || std::ssize(parts_) >= ranks_.size());
}

// Clips, and moves weights, statistics and average, unless the gradient's norm says to leave the step out.
void TrainStep::update(double lr) {
  const Tensor norm = norm_.rows(1, 1);
  clip_on_device(optimizer_.parameters(), options_.clip,
                 options_.clip > 0 ? std::numeric_limits<double>::infinity() : largest_gradient_norm, norm_);
  optimizer_.step(lr, norm);
  statistics_->end_step(norm);
  if (options_.average) options_.average->update(norm);
}

bool TrainStep::record(double lr, const Pass& pass) {
  bool stepped = false;
  try {
    recorded_ = std::make_unique<RecordedStep>(device_, [&] {
      Pass recording = pass;
      std::vector<uint64_t> drawn = compute(recording, true);
      stepped = true;  // the optimizer counts a step that has not run
      update(lr);
      return drawn;
    });
  } catch (const Error& error) {
    note_ = error.what() + std::string("; so every operation of a step is launched by itself");
    options_.graph = false;
  }
  if (peers_ && largest_of(ranks_, recorded_ == nullptr) != 0) {  // on any rank
    recorded_.reset();
    options_.graph = false;
  }
  if (stepped) optimizer_.undo_step_count();
  return recorded_ != nullptr;
}

void TrainStep::replay(double lr, Pass& pass) {
  std::vector<uint64_t> drawn;
  each_own_part(parts_, pass, [&](const MicroBatch& part, Pass& its) {
    inputs_.draw(part, its);
    for (uint64_t i = 0; i < keys_[static_cast<size_t>(part.index)]; ++i) drawn.push_back(its.key());
  });
  recorded_->run(drawn, [&] { optimizer_.step(lr, norm_.rows(1, 1)); });
}

}  // namespace tessera
