#include "apps/training/run_parts.h"

#include <algorithm>
#include <cmath>

#include "apps/training/checkpoint.h"
#include "apps/training/footprint.h"
#include "apps/training/validation.h"
#include "engine/core/error.h"
#include "engine/core/machine_memory.h"
#include "engine/core/random.h"
#include "models/weights.h"

namespace tessera {

namespace {

// The maps of the config's folder, or null.
std::shared_ptr<const TokenLabels> token_labels_of(const DataConfig& config, const Dataset& dataset,
                                                   const Model& model) {
  if (config.token_labels.empty()) return nullptr;
  check(model.token_targets != nullptr, "train: data.token_labels is for a model that is trained by token ",
        "labelling, lvvit-s or sp-vit-s say; its patches are classified too (\"dense\": true)");
  return std::make_shared<TokenLabels>(config.token_labels, dataset);
}

// Two images at once are the least that any model's step takes; the weights of a moving average come on top.
void check_step_memory(const TrainConfig& config) {
  const StepMemory memory = step_memory_of(config.model, std::min<int64_t>(config.batch, 2));
  const int64_t average = config.ema > 0 ? memory.weights : 0;
  check_memory(static_cast<double>(memory.total() + average), "train: a step of this model needs");
}

// Whether a step on a GPU is told every class's share of a picture: of a mixed one, or for a loss by tokens.
bool learns_from_shares(const TrainConfig& config, const Model& model) {
  return config.augment.mix.any() || model.token_targets != nullptr;
}

// A fresh head is drawn from a seed of its own: where the file's run had the same seed, it would otherwise be
// the file's head as it began, which the file's other weights have been trained with.
uint64_t seed_of_weights(const TrainConfig& config) {
  constexpr uint64_t head_tag = 2;
  const auto seed = static_cast<uint64_t>(config.seed);
  return config.init.fresh_head ? Random(seed).split(head_tag).bits64() : seed;
}

}  // namespace

LoaderOptions loader_options(const TrainConfig& config, const Dataset& dataset, const Model& model,
                             const Computing& computing) {
  const int64_t images = dataset.train->size();
  check(images * config.passes >= config.batch, "data: ", config.data.name,
        config.data.dir.empty() ? "" : " in " + config.data.dir, ": ", images,
        " training images are less than one batch of ", config.batch, "; give --batch N, ",
        images * config.passes, " at most");
  LoaderOptions options;
  options.sampler = {.batch = config.batch,
                     .passes = config.passes,
                     .repetitions = config.repetitions,
                     .multiple = config.epoch_multiple};
  options.mix = config.augment.mix;
  options.token_labels = token_labels_of(config.data, dataset, model);
  options.seed = static_cast<uint64_t>(config.seed);
  const bool made_by_host =
      dataset.train->has_masks() || dataset.train->has_latents() || options.token_labels;
  if (computing.device != Device::cpu && !made_by_host)
    options.delivery = {.device = computing.device,
                        .dtype = evaluation_dtype(task_of(config.model), computing.precision),
                        .resident = config.data.on_device,
                        .classes = learns_from_shares(config, model) ? dataset.classes() : 0};
  return options;
}

Schedule schedule_of(const TrainConfig& config, int64_t steps_in_epoch, int64_t steps) {
  const ScheduleConfig& s = config.schedule;
  const auto steps_of = [&](double epochs) {
    return std::llround(epochs * static_cast<double>(steps_in_epoch));
  };
  using Decay = Schedule::Decay;
  return Schedule({.highest = config.optimizer.lr,
                   .first = s.warmup_lr,
                   .last = s.min_lr,
                   .warmup = steps_of(s.warmup_epochs),
                   .iterations = steps - steps_of(s.cooldown_epochs),
                   .decay = s.decay == "cosine"   ? Decay::cosine
                            : s.decay == "linear" ? Decay::linear
                                                  : Decay::none});
}

Model initial_model(const TrainConfig& config, Device device, std::string& remark) {
  if (device == Device::cpu) check_step_memory(config);
  Model model = build(config.model, {.seed = seed_of_weights(config), .device = device});
  if (config.init.weights.empty()) return model;
  const std::filesystem::path from = checkpoint_file(config.init.weights);
  remark = load_weights(model, from, {config.init.resize_positions, config.init.fresh_head});
  expect_finite_weights(model.parameters.state(), from);
  return model;
}

std::optional<Ema> average_of(const TrainConfig& config, const Model& model) {
  if (config.ema <= 0) return std::nullopt;
  return Ema(model.parameters.state(), config.ema);
}

StepOptions step_options(const TrainConfig& config, const Model& model, const Computing& computing,
                         std::optional<Ema>& average) {
  const StepOptions options{.micro_batch = config.micro_batch,
                            .clip = config.clip,
                            .smoothing = config.smoothing,
                            .graph = computing.graph,
                            .precision = computing.precision,
                            .average = average ? &*average : nullptr,
                            .shares = learns_from_shares(config, model),
                            .batch_norm = config.batch_norm,
                            .ranks = computing.ranks};
  check(!computing.ranks || config.watch.every_steps == 0,
        "train: watch.every_steps is for a run on one rank; set it to 0");
  check_step_options(model, options, config.batch);
  return options;
}

}  // namespace tessera
