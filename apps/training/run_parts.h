#pragma once

#include <optional>

#include "apps/training/config.h"
#include "apps/training/precision.h"
#include "apps/training/step.h"
#include "data/loader.h"
#include "engine/optim/schedule.h"

namespace tessera {

// The parts that a training run is put together from, as its config describes them.

/// The model with the weights that it begins with: drawn by the seed, or those of config.init, of which
/// `remark` then tells what the user should know.
Model initial_model(const TrainConfig& config, Device device, std::string& remark);

/// The moving average of the weights, if the config asks for one.
std::optional<Ema> average_of(const TrainConfig& config, const Model& model);

/// Fails where steps of the config's batch cannot be as it says (check_step_options).
StepOptions step_options(const TrainConfig& config, const Model& model, const Computing& computing,
                         std::optional<Ema>& average);

/// How the training pictures are drawn, mixed and delivered. Fails for token labels of a model that cannot
/// learn from them.
LoaderOptions loader_options(const TrainConfig& config, const Dataset& dataset, const Model& model,
                             const Computing& computing);

/// The learning rate of each of `steps` steps.
Schedule schedule_of(const TrainConfig& config, int64_t steps_in_epoch, int64_t steps);

}  // namespace tessera
