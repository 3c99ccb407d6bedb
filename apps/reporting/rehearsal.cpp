#include "apps/reporting/rehearsal.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

#include "apps/reporting/measuring.h"
#include "apps/reporting/run_report.h"
#include "apps/reporting/table.h"
#include "apps/training/session.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr double measured_seconds = 2;  // of steps, and of evaluation
constexpr int64_t few_pictures = 64;    // that the rehearsed evaluation and report judge

// A new folder in the system's place for temporary files, removed with all that is in it.
class PassingFolder {
 public:
  PassingFolder() {
    std::string name = (fs::temp_directory_path() / "tessera-dry-run-XXXXXX").string();
    check(mkdtemp(name.data()) != nullptr, "train: --dry-run: ", name, ": no folder can be made there");
    path_ = name;
  }
  ~PassingFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  PassingFolder(const PassingFolder&) = delete;
  PassingFolder& operator=(const PassingFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string seconds_text(const Json& value) { return as_seconds(value); }

constexpr Column phases[] = {{"phase", "phase"}, {"seconds", "time", seconds_text}, {"what", "what"}};

// The same run, two steps long, judged on a few pictures.
TrainConfig shortened(TrainConfig config, const Dataset& dataset) {
  config.steps = 2;
  config.epochs = 1;
  config.schedule.warmup_epochs = config.schedule.cooldown_epochs = 0;
  config.tensorboard = false;
  config.watch.every_steps = 0;
  config.data.validation_images = std::min(dataset.validation->size(), few_pictures);
  return config;
}

// A short run from its first step to its report, and its resumption.
Json rehearsed(const TrainConfig& config, const Computing& computing) {
  Json rows = Json::array();
  const PassingFolder folder;
  const Dataset few = open_data(config.data, task_of(config.model));
  RunFolder run = RunFolder::create(folder.path() / "run", to_json(config));
  const auto add = [&](const char* phase, const Stopwatch& watch, const std::string& what) {
    rows.push_back({{"phase", phase}, {"seconds", watch.seconds()}, {"what", what}});
  };
  Trainer trainer(config, few, computing);
  trainer.set_verbosity(Verbosity::quiet);
  const Stopwatch trained;
  run_session(trainer, run, {}, computing, "start");
  add("checkpoint", trained,
      fmt::format("2 steps, {} pictures judged, state of {}", few.validation->size(),
                  as_bytes(fs::file_size(run.state()))));
  const Stopwatch reported;
  write_report(run.path(), few, computing.device, trainer.best_pass());
  add("report", reported, "the page of the run");
  const Stopwatch resumed;
  Trainer again(config, few, computing);
  check(again.restore(run), "train: --dry-run: the state that was saved is not found again");
  add("resume", resumed, "the state is read back");
  return rows;
}

double mean_of(const std::deque<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

void dry_run(const TrainConfig& config, const Dataset& dataset, const Computing& computing, double opened,
             bool json) {
  Json rows{{{"phase", "data"},
             {"seconds", opened},
             {"what", fmt::format("{} training and {} validation pictures opened", dataset.train->size(),
                                  dataset.validation->size())}}};
  Speed speed;
  int64_t epochs = 0, steps = 0;
  {
    Trainer trainer(config, dataset, computing);
    epochs = trainer.epochs();
    steps = config.steps > 0 ? config.steps : epochs * trainer.steps_in_epoch();
    speed = trainer.measure_speed(measured_seconds);
  }
  rows.push_back({{"phase", "step"},
                  {"seconds", speed.step_seconds},
                  {"what", fmt::format("{} pictures: {:.0f} a second", config.batch,
                                       static_cast<double>(config.batch) / speed.step_seconds)}});
  rows.push_back({{"phase", "evaluation"},
                  {"seconds", speed.evaluation_seconds},
                  {"what", "of all validation pictures, from those of 2 s"}});
  for (const Json& row : rehearsed(shortened(config, dataset), computing)) rows.push_back(row);
  const double evaluations = std::ceil(static_cast<double>(epochs) / static_cast<double>(config.eval_every));
  const double seconds =
      static_cast<double>(steps) * speed.step_seconds + evaluations * speed.evaluation_seconds;
  const int64_t memory = peak_memory_bytes(computing.device);
  if (json)
    return print_json({{"phases", rows},
                       {"epochs", epochs},
                       {"steps", steps},
                       {"seconds", seconds},
                       {"peak_memory_bytes", memory}});
  print_table(phases, rows);
  fmt::print(
      "\nAll phases work. The whole run, {} epochs of {} steps, takes about {} here, and {} of memory.\n"
      "Nothing was kept.\n",
      epochs, speed.steps_in_epoch, clock_text(seconds), as_bytes(memory));
}

TrainConfig single_batch_config(TrainConfig config) {
  config.augment = no_augmentation;
  config.smoothing = 0;
  config.data.train_images = config.batch;
  config.data.validation_images = few_pictures;
  config.repetitions = config.passes = config.epoch_multiple = 1;
  return config;
}

bool overfit_batch(const TrainConfig& config, const Dataset& dataset, const Computing& computing, bool json) {
  constexpr size_t remembered = 5;  // losses of which the last mean is taken
  constexpr int64_t warm = 10;
  const int64_t most = config.steps > 0 ? config.steps : 300;
  const double wanted = task_of(config.model) == Task::diffuse ? 0.5 : 0.1;
  Trainer trainer(config, dataset, computing);
  std::deque<double> last;
  std::vector<double> losses;
  while (std::ssize(losses) < most &&
         (losses.size() < remembered || mean_of(last) > wanted * losses.front())) {
    const double share = std::min(1.0, static_cast<double>(losses.size() + 1) / static_cast<double>(warm));
    losses.push_back(trainer.try_learning_rate(share * config.optimizer.lr));
    last.push_back(losses.back());
    if (last.size() > remembered) last.pop_front();
    if (!json && (losses.size() == 1 || losses.size() % 20 == 0))
      fmt::print("step {:>4}  loss {:.4f}\n", losses.size(), losses.back());
    if (!std::isfinite(losses.back())) break;
  }
  const bool learned = mean_of(last) <= wanted * losses.front();
  if (json) {
    print_json({{"learned", learned},
                {"steps", losses.size()},
                {"first_loss", losses.front()},
                {"last_loss", mean_of(last)},
                {"losses", losses}});
    return learned;
  }
  fmt::print("\nOne batch of {} pictures: loss {:.4f} -> {:.4f} in {} steps. ", dataset.train->size(),
             losses.front(), mean_of(last), losses.size());
  fmt::print("{}\n", learned
                         ? "The model learns it by heart: data, model and gradients fit together."
                         : fmt::format("That is not below {:g} of the first: the learning rate ({:g}) may be "
                                       "wrong (--find-lr), the labels, or the model.",
                                       wanted, config.optimizer.lr));
  return learned;
}

}  // namespace tessera
