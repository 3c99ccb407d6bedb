#include "apps/options/train_plan.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/reporting/run_record.h"
#include "apps/reporting/table.h"
#include "apps/training/batch_choice.h"
#include "apps/training/trainer.h"
#include "engine/core/error.h"

namespace tessera {

EventLines::EventLines(RunFolder& folder, bool wanted) : descriptor_(wanted ? dup(STDOUT_FILENO) : -1) {
  if (!wanted) return;
  folder.echo_events(descriptor_);
  redirect_.emplace(STDERR_FILENO);
}

EventLines::~EventLines() {
  if (descriptor_ >= 0) close(descriptor_);
}

void check_kind_of_run(const TrainOptions& options) {
  std::string first;
  for (const char* option : {"--find-lr", "--dry-run", "--overfit-batch", "--time"}) {
    if (!options.given(option)) continue;
    check(first.empty(), "train: ", first, " and ", option, " are different things to do; give one of them");
    first = option;
  }
  check(!options.given("--time") || !options.given("--epochs"),
        "train: --time says how long the run is; leave --epochs away");
  check(!options.overfit || !options.automatic_batch(),
        "train: --overfit-batch: a batch of how many? Give --batch N in place of auto");
  if (!options.computing.ranks) return;
  check(first.empty(), "train: ", first, " computes on one rank; start one");
  check(!options.automatic_batch(),
        "train: --batch auto goes by one process's memory; start one rank, and give all its batch");
}

void choose_batch_for(TrainConfig& config, const Dataset& dataset, const TrainOptions& options) {
  const BatchChoice choice = choose_batch(config, dataset.train->size(), options.computing.device);
  config.batch = choice.batch;
  if (options.quiet || options.json) return;
  fmt::print(
      "batch  {} (auto): a step takes {}{}; {}. The learning rate stays {:g}\n", choice.batch,
      as_bytes(choice.step_bytes),
      choice.free_bytes > 0 ? " of " + as_bytes(choice.free_bytes) + " that are free" : "",
      choice.by_memory ? "more would not fit" : "an epoch keeps 50 steps where it can, and 1024 is the most",
      config.optimizer.lr);
}

double left_of_budget(const TrainOptions& options, const Stopwatch& since_start) {
  return options.budget - since_start.seconds() - std::max(0.3, 0.01 * options.budget);  // the end takes time
}

StopAfter fit_to_budget(TrainConfig& config, const Dataset& dataset, const TrainOptions& options,
                        const Stopwatch& since_start) {
  StopAfter stop = options.stop;
  if (options.budget <= 0) return stop;
  Speed speed;
  {
    Trainer trial(config, dataset, options.computing);
    speed = trial.measure_speed(std::clamp(0.02 * options.budget, 0.2, 10.0));
  }
  stop.budget = left_of_budget(options, since_start);
  stop.evaluation_seconds = speed.evaluation_seconds;
  fit_config(config, steps_that_fit(stop.budget, speed, config.eval_every), speed.steps_in_epoch);
  if (!options.quiet && !options.json)
    fmt::print("time   {}: {} steps fit at {} a step and {} an evaluation\n", clock_text(options.budget),
               config.steps, as_seconds(speed.step_seconds), as_seconds(speed.evaluation_seconds));
  return stop;
}

std::vector<std::string> changes_of(const TrainOptions& options, const Json& document) {
  std::vector<std::string> changes = options.assignments;
  if (options.given("--epochs")) {
    if (document.value("steps", int64_t{0}) > 0) changes.push_back("steps=0");  // as of a run with --time
    changes.push_back(fmt::format("epochs={}", options.epochs));
  }
  if (options.given("--lr")) changes.push_back(fmt::format("optimizer.lr={}", options.lr));
  if (options.given("--patience")) changes.push_back(fmt::format("patience={}", options.patience));
  return changes;
}

}  // namespace tessera
