#include "apps/options/train_plan.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/reporting/run_record.h"
#include "apps/reporting/table.h"
#include "apps/training/batch_choice.h"
#include "apps/training/run_identity.h"
#include "engine/core/error.h"

namespace tessera {

EventLines::EventLines(RunFolder& folder, bool wanted) : descriptor_(wanted ? dup(STDOUT_FILENO) : -1) {
  if (!wanted) return;
  folder.echo_events(descriptor_);
  redirect_.emplace(STDERR_FILENO);
}

void EventLines::print(const Json& event) const {
  if (descriptor_ < 0) return;
  const std::string line = event.dump() + "\n";
  check(write(descriptor_, line.data(), line.size()) == std::ssize(line),
        "standard output cannot be written: ", std::strerror(errno));
}

EventLines::~EventLines() {
  if (descriptor_ >= 0) close(descriptor_);
}

void check_printed(const RunFolder& folder) {
  const int error = folder.echo_error();
  check(error == 0 || error == EPIPE, "standard output cannot be written: ", std::strerror(error),
        "; the run has ended, and ", (folder.path() / "events.jsonl").string(), " has all of its events");
}

void check_kind_of_run(const TrainOptions& options) {
  check(!options.find_lr || !options.given("--resume"),
        "train: --find-lr begins with fresh weights, so there is nothing to --resume");
  check(!options.find_lr || !options.given("--stop-after"),
        "train: --find-lr ends by itself; leave --stop-after away");
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

void check_resumable(const TrainOptions& options) {
  check_kind_of_run(options);
  for (const char* option :
       {"--recipe", "--dataset", "--model", "--batch", "--image-size", "--seed", "--init",
        "--resize-positions", "--fresh-head", "--tensorboard", "--dry-run", "--overfit-batch"})
    check(!options.given(option), "train: ", option,
          " would change the run that --resume goes on with; only --data, --device, --precision, --threads, "
          "--stop-after, --time, --epochs, --lr, --patience and --set of some keys go with it");
}

ConfigChange change_of(const TrainOptions& options, const Json& config) {
  ConfigChange change{config, {}};
  std::vector<std::string>& all = change.assignments;
  if (options.given("--epochs")) {
    if (config.value("steps", int64_t{0}) > 0) all.emplace_back("steps=0");  // as of a run with --time
    all.push_back(fmt::format("epochs={}", options.epochs));
  }
  if (options.given("--lr")) all.push_back(fmt::format("optimizer.lr={}", options.lr));
  if (options.given("--patience")) all.push_back(fmt::format("patience={}", options.patience));
  all.insert(all.end(), options.assignments.begin(), options.assignments.end());
  for (const std::string& assignment : all) change_key(change.config, assignment);
  if (change.config == config) all.clear();
  return change;
}

void check_left_to_train(const Trainer& trainer, const TrainConfig& config, const RunFolder& folder,
                         const ConfigChange& change) {
  if (change.assignments.empty()) return;
  std::string all;
  for (const std::string& assignment : change.assignments) all += (all.empty() ? "" : ", ") + assignment;
  const int64_t done = trainer.position().epoch;
  const std::string more =
      trainer.out_of_patience()
          ? fmt::format("nothing better came (patience {}); give --patience N for more", config.patience)
          : fmt::format("they are all of its {}; give --epochs N, more than {}", trainer.epochs(), done);
  fail("train: ", folder.path().string(), ": nothing is left to train with ", all, ", as ", done,
       " epochs are done and ", more);
}

}  // namespace tessera
