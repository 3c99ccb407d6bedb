#pragma once

#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "apps/options/redirect.h"
#include "apps/training/trainer.h"
#include "data/sets/shapes.h"
#include "tests/io/temporary_folder.h"

namespace tessera {

// A run that takes moments, in this process.
struct SmallRun {
  TrainConfig config;
  Dataset dataset;
};

// 2 epochs of 3 steps on shapes of 16 pixels, unless `changes` (a merge patch of the config) says otherwise.
inline SmallRun small_run(const Json& changes,
                          Dataset dataset = make_shapes({.image_size = 16, .train = 20, .validation = 10})) {
  Json document{{"data", {{"name", "shapes"}}},
                {"augment", {{"crop_padding", 1}}},
                {"batch", 6},
                {"epochs", 2},
                {"schedule", {{"warmup_epochs", 1}}},
                {"seed", 3}};
  document.merge_patch(changes);
  SmallRun run{read_train_config(document, "small run"), std::move(dataset)};
  run.config.model = resolve_model(run.config.model, run.dataset);
  return run;
}

inline const Json small_vit{{"arch", "vit"},
                            {"dim", 8},
                            {"depth", 1},
                            {"tokenizer", {{"kind", "patch"}, {"patch_size", 4}}},
                            {"attention", {{"heads", 2}, {"head_dim", 4}}}};
inline const Json small_resnet{{"arch", "resnet"}, {"depth", 8}, {"width", 4}};

// While one lives, what is printed goes nowhere.
class Quiet {
 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere_{std::fopen("/dev/null", "w"), std::fclose};
  Redirect redirect_{fileno(nowhere_.get())};
};

// Begins the run in `path`, or goes on with the one that is there.
inline Ending train_in(const std::filesystem::path& path, const SmallRun& run, const StopAfter& stop = {},
                       const Computing& computing = {}) {
  const Quiet quiet;
  Trainer trainer(run.config, run.dataset, computing);
  if (!std::filesystem::exists(path)) {
    RunFolder folder = RunFolder::create(path, to_json(run.config));
    return trainer.run(folder, stop);
  }
  RunFolder folder = RunFolder::open(path);
  trainer.restore(folder);
  return trainer.run(folder, stop);
}

// Every file of the two folders but events.jsonl, which holds times, has the same bytes.
inline void check_same_files(const std::filesystem::path& a, const std::filesystem::path& b) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(a)) {
    const std::string name = entry.path().filename();
    if (name == "events.jsonl") continue;
    CAPTURE(name);
    ++files;
    CHECK(bytes_of(entry.path()) == bytes_of(b / name));
  }
  CHECK(files >= 5);
  CHECK(files + 1 == std::distance(std::filesystem::directory_iterator(b), {}));
}

}  // namespace tessera
