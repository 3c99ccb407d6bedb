#pragma once

// Training in a few lines, for a program that has its data set in hand. For a loop of one's own see
// TrainStep.
//
//   const Dataset data = memory_dataset({"cat", "dog"}, train_pictures, validation_pictures);
//   const TrainConfig config = train_config("sl-vit", data, {{"epochs", 20}});
//   train(config, data, "runs/cats");  // a new run; the same call goes on with one that was broken off
//   std::cout << evaluate(read_checkpoint("runs/cats"), data).text();

#include <filesystem>
#include <string>

#include "apps/training/checkpoint.h"
#include "apps/training/config.h"
#include "apps/training/evaluation.h"
#include "apps/training/trainer.h"
#include "data/memory_dataset.h"

namespace tessera {

/// The config of a run of `preset`, sized for the images and classes of the data set. `changes` are keys of a
/// config.json: {{"epochs", 20}, {"optimizer", {{"lr", 1e-3}}}}. Fails as read_train_config and resolve_model
/// do.
TrainConfig train_config(const std::string& preset, const Dataset& dataset,
                         const Json& changes = Json::object());

/// Trains in the run folder until the run is done, a signal comes (if an Interrupt lives), or `stop`. Begins
/// a new run where the folder holds none, and goes on exactly where its run stopped otherwise. Fails for the
/// run of another config.
Ending train(const TrainConfig& config, const Dataset& dataset, const std::filesystem::path& folder,
             const StopAfter& stop = {}, const Computing& computing = {});

/// Reads the weights of a checkpoint file or of a run folder (its best ones) on the CPU.
Checkpoint read_checkpoint(const std::filesystem::path& path);

/// How well a checkpoint does on the data set's validation pictures, normalised as those that it was trained
/// on.
Evaluation evaluate(const Checkpoint& checkpoint, const Dataset& dataset);

}  // namespace tessera
