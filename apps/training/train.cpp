#include "apps/training/train.h"

#include <nlohmann/json.hpp>

#include "apps/training/session.h"
#include "data/augment/pipeline.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

// The first key of the config in which the folder's run differs.
void check_same_run(const Json& wanted, const RunFolder& folder) {
  const Json held = read_json(folder.config());
  for (const auto& [key, value] : wanted.items())
    check(held.contains(key) && held.at(key) == value, "train: ", folder.config().string(),
          " is of another run: its \"", key, "\" differs from this config's; choose another folder");
}

}  // namespace

TrainConfig train_config(const std::string& preset, const Dataset& dataset, const Json& changes) {
  check(changes.is_object(), "train_config: changes are ", changes.dump(),
        ", wanted an object of config keys");
  Json document{{"model", preset}};
  document.merge_patch(changes);
  TrainConfig config = read_train_config(document, "train_config");
  config.data.name = dataset.name;
  config.data.image_size = dataset.image_shape[1];
  config.model = resolve_model(config.model, dataset);
  return config;
}

Ending train(const TrainConfig& config, const Dataset& dataset, const fs::path& path, const StopAfter& stop,
             const Computing& computing) {
  Trainer trainer(config, dataset, computing);
  const bool goes_on = fs::exists(path / "config.json");
  RunFolder folder = goes_on ? RunFolder::open(path) : RunFolder::create(path, to_json(config));
  if (goes_on) check_same_run(to_json(config), folder);
  if (goes_on) trainer.restore(folder);
  if (trainer.finished()) return Ending::finished;
  return run_session(trainer, folder, stop, computing, goes_on ? "resume" : "start");
}

Checkpoint read_checkpoint(const fs::path& path) { return read_checkpoint(path, Device::cpu); }

Evaluation evaluate(const Checkpoint& checkpoint, const Dataset& dataset) {
  const DataFacts& trained_on = checkpoint.data;
  check(dataset.class_names == trained_on.class_names, "evaluate: ", checkpoint.path.string(), " knows ",
        trained_on.class_names.size(), " classes, ", dataset.name, " has ", dataset.classes(),
        " or names them otherwise; they must be the same");
  constexpr int64_t batch = 128;
  const auto loader = evaluation_loader(dataset.validation, Pipeline(trained_on.empty_dataset()), batch);
  return evaluate(checkpoint.model, *loader, {}).value();
}

}  // namespace tessera
