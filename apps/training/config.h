#pragma once

// The config of a training run, one JSON document: recipes and a run's config.json have this form.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/training/batch_norm.h"
#include "apps/training/data_config.h"
#include "apps/training/task.h"
#include "data/augment/options.h"
#include "data/dataset.h"
#include "engine/io/json.h"
#include "engine/optim/parameter_groups.h"

namespace tessera {

struct OptimizerConfig {
  std::string kind = "adamw";  ///< or "sgd"
  double lr = 0.003;
  double weight_decay = 0.05;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;  ///< adamw
  double momentum = 0.9;                          ///< sgd
  bool nesterov = false;                          ///< sgd
  std::vector<GroupRule> groups;                  ///< other rates and decays for some parameters
};

/// Linear warm-up from warmup_lr to the optimizer's lr, then a decay to min_lr, at which the last
/// cooldown_epochs stay. By default the warm-up is a tenth of the epochs, 10 at most, and warmup_lr is
/// min_lr.
struct ScheduleConfig {
  std::string decay = "cosine";  ///< or "linear", or "none": the learning rate stays
  double warmup_epochs = 10;
  double warmup_lr = 1e-6;
  double min_lr = 1e-6;
  double cooldown_epochs = 0;
};

struct CheckpointConfig {
  /// The state is saved after each epoch; within an epoch also every so many steps and minutes. 0: never.
  int64_t every_steps = 0;
  double every_minutes = 10;
  int64_t every_epochs =
      0;             ///< keep the weights after every so many epochs, beside best and last; 0: of none
  int64_t keep = 0;  ///< how many of these files stay, the newest; 0: all
};

/// What a run tells about its layers, see layer_figures.h.
struct WatchConfig {
  int64_t every_steps = 0;  ///< the run's first step, and each whose number this divides; 0: none
};

/// The weights that a run begins with, if they are not drawn at random.
struct InitConfig {
  std::string weights;            ///< .safetensors, Tessera's or timm's, or a run folder; empty: none
  bool resize_positions = false;  ///< resize position embeddings to the image size, see models/weights.h
  bool fresh_head = false;        ///< leave out the file's classifier, see models/weights.h
  bool expected = false;          ///< the recipe is meant to begin with weights; a run without them says so
};

/// The defaults are the regime of "Vision Transformer for Small-Size Datasets", with one pass an epoch.
struct TrainConfig {
  std::string about;   ///< what the recipe is for
  Json model;          ///< {"preset": NAME, and what differs from it}, or a whole config with "arch"
  std::string preset;  ///< the preset that a whole config was made from; a run writes it for its readers
  InitConfig init;
  DataConfig data;
  AugmentOptions augment;
  int64_t batch = 128;
  /// Images that go forward and backward at once, on any device and in any precision; the gradients of the
  /// parts add up to the whole batch's. 0: the whole batch. Not given ("auto"): what suits the device, see
  /// StepOptions. (A segmenter's loss is the mean of each part's mean over the pixels that have a class.)
  std::optional<int64_t> micro_batch;
  /// "batch" takes the whole batch in one pass, and refuses a smaller micro_batch; "micro_batch" moves the
  /// running statistics by each part in turn. For models with batch norms.
  BatchNormStatistics batch_norm = BatchNormStatistics::batch;
  int64_t epochs = 100;
  int64_t steps = 0;   ///< the run's and the schedule's length in steps; 0: `epochs` says it
  int64_t passes = 1;  ///< over the training images in one epoch
  /// How often each image comes in a row; an epoch stays `passes` times as long as the set. 3 is DeiT's
  /// repeated augmentation (Hoffer et al., 2020); the code of "Vision Transformer for Small-Size Datasets"
  /// has 3 passes and no repetition instead.
  int64_t repetitions = 1;
  int64_t epoch_multiple = 1;  ///< images in an epoch are cut to a multiple of this; 256 in DeiT's code
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  double clip = 0;         ///< the largest norm of the gradient; 0: any
  double smoothing = 0.1;  ///< of the labels
  double ema = 0;          ///< decay of a moving average of the weights, which is then evaluated; 0: none
  int64_t eval_every = 1;  ///< evaluate after every so many epochs, and after the last one
  int64_t patience = 0;    ///< end after so many evaluations in a row without a better score; 0: never
  CheckpointConfig checkpoint;
  WatchConfig watch;
  bool tensorboard = false;  ///< write TensorBoard's event files too
  int64_t seed = 0;          ///< of weights, order and augmentation

  TrainConfig();
};

/// Fails for an unknown key with the nearest known one, and for a value of the wrong type or out of range;
/// messages begin with `where`. A run's config.json from before the key "batch_norm" means what it did then:
/// the whole batch for models with batch norms. Keys that are left out have their defaults. For a diffusion
/// model the defaults are no smoothing, as it has no label to smooth, and no crop padding, which it would
/// learn to draw; for a segmenter no smoothing; for latents no augmentation.
TrainConfig read_train_config(const Json& document, const std::string& where);

/// The whole config, which read_train_config reads back.
Json to_json(const TrainConfig& config);

/// The model's preset, or its architecture where no preset is known.
std::string model_name(const TrainConfig& config);

}  // namespace tessera
