#include "apps/options/train_messages.h"

#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/reporting/run_advice.h"
#include "apps/reporting/table.h"
#include "apps/training/recipe.h"
#include "data/registry.h"
#include "engine/check/gemm_peak.h"
#include "engine/core/parallel.h"
#include "engine/core/printable.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

fs::path folder_above(const fs::path& run) {
  const fs::path above = run.parent_path();
  return above.empty() ? "." : above;
}

void say_what_next(const TrainConfig& config, const RunFolder& folder, const TrainOptions& options) {
  const std::string run = folder.path().string();
  const Task task = task_of(config.model);
  const Precision precision = options.computing.precision;
  fmt::print("Next:\n  tessera eval {}{}{}\n", run,
             config.data.dir.empty() ? "" : " --data " + config.data.dir,
             precision == Precision::f32 ? "" : fmt::format(" --precision {}", name(precision)));
  fmt::print("  tessera runs {}   (beside the other runs)\n", folder_above(folder.path()).string());
  if (task == Task::segment) return;
  if (task == Task::diffuse)
    return fmt::print("  tessera sample {} {}\n", run,
                      holds_latents(config.data.name) ? "--format npz --out samples.npz" : "--out grid.png");
  fmt::print("  tessera predict {} IMAGE... --overlay overlays\n", run);
  if (options.given("--recipe") && !options.given("--model"))
    fmt::print("  tessera train --recipe {} --model vit{}   (a plain ViT, to compare)\n", options.recipe,
               config.data.dir.empty() ? "" : " --data " + config.data.dir);
}

}  // namespace

void introduce(const Trainer& trainer, const TrainConfig& config, const Dataset& dataset,
               const RunFolder& folder, const Computing& computing, const std::string& ranks) {
  fmt::print("model  {}, {} parameters\n", model_name(config),
             as_metric(trainer.model().parameters.trainable_count()));
  if (!config.init.weights.empty()) fmt::print("init   {}\n", config.init.weights);
  if (!trainer.remark_on_init().empty()) fmt::print("       {}\n", trainer.remark_on_init());
  const Shape& shape = dataset.image_shape;
  fmt::print("data   {}: {} training and {} validation {}, {} classes, {} x {} {}\n", config.data.name,
             dataset.train->size(), dataset.validation->size(),
             dataset.latent_scale > 0 ? "latents" : "images", dataset.classes(), shape[1], shape[2],
             dataset.latent_scale > 0 ? fmt::format("x {} numbers", shape[0]) : "pixels");
  for (const std::string& note : dataset.notes) fmt::print("       {}\n", printable(note));
  if (!ranks.empty()) fmt::print("ranks  {}\n", ranks);
  if (trainer.data_on_device()) fmt::print("       kept and augmented on the GPU\n");
  const std::string length =
      config.steps > 0 ? fmt::format("{} steps, {} an epoch", config.steps, trainer.steps_in_epoch())
                       : fmt::format("{} epoch{} of {} steps", trainer.epochs(),
                                     trainer.epochs() == 1 ? "" : "s", trainer.steps_in_epoch());
  fmt::print("run    {}: {}, {} images a step, {} threads, {}\n", folder.path().string(), length,
             config.batch, threads(), name(computing.precision));
  const bool asked = computing.device == Device::cpu && computing.precision == Precision::f32;
  if (const std::string advice = bf16_advice(computing, asked ? bf16_speed() : 0); !advice.empty())
    fmt::print("       {}\n", advice);
  std::fflush(stdout);
}

void say_finished(const Trainer& trainer, const TrainConfig& config, const RunFolder& folder,
                  const TrainOptions& options) {
  const Position& at = trainer.position();
  const std::string run = folder.path().string();
  const Task task = task_of(config.model);
  const RunRecord record = read_run(folder.path());
  if (at.best_epoch > 0)
    fmt::print("\nDone in {}: best {} {} (epoch {}), last {}. The run folder is {}\n",
               name(options.computing.precision), score_name(task), score_text(task, at.best_score),
               at.best_epoch, score_text(task, at.last_score), run);
  else
    fmt::print("\nDone, but no evaluation was finite, so there is no best. The run folder is {}\n", run);
  if (options.quiet) return;
  fmt::print("{}\n", time_line(record));
  if (trainer.out_of_patience())
    fmt::print("Ended early: {} evaluations in a row brought nothing better (--patience).\n",
               config.patience);
  for (const std::string& advice : advice_of(record)) fmt::print("{}\n", advice);
  say_what_next(config, folder, options);
}

void say_broken_off(const Trainer& trainer, const RunFolder& folder) {
  const Position& at = trainer.position();
  fmt::print("\nStopped in epoch {} after step {}; all is saved. Go on with\n  tessera train --resume {}\n",
             at.epoch + 1, at.step, folder.path().string());
}

void say_finished_before(const Trainer& trainer, const TrainConfig& config, const RunFolder& folder) {
  if (trainer.out_of_patience())
    fmt::print("{} has ended after {} epochs, as nothing better came (patience {})\n", folder.path().string(),
               trainer.position().epoch, config.patience);
  else
    fmt::print("{} has finished all of its {} epochs\n", folder.path().string(), trainer.epochs());
}

void say_report(const fs::path& page) { fmt::print("The report is {}\n", page.string()); }

}  // namespace tessera
