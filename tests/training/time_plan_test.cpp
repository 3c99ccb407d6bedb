// A run that has to end in time is made as long as the time that is left, with its learning rate decayed.

#include "apps/training/time_plan.h"

#include <doctest/doctest.h>

#include "tests/training/small_run.h"

using namespace tessera;

namespace {

double last_number(const std::string& csv, int column) {
  std::istringstream row(csv.substr(csv.rfind('\n', csv.size() - 2) + 1));
  std::string field;
  for (int i = 0; i <= column; ++i) std::getline(row, field, ',');
  return std::stod(field);
}

}  // namespace

TEST_CASE("warm-up and cool-down keep their share of a run of another length, in whole steps") {
  TrainConfig config;
  config.epochs = 10;
  config.schedule.warmup_epochs = 2;
  config.schedule.cooldown_epochs = 1;
  fit_config(config, 25, 5);
  CHECK(config.steps == 25);
  CHECK(config.epochs == 5);
  CHECK(config.schedule.warmup_epochs == 1);
  CHECK(config.schedule.cooldown_epochs == doctest::Approx(3.0 / 5));  // 2.5 steps
  config = TrainConfig{};
  config.epochs = 2;
  config.schedule.warmup_epochs = config.schedule.cooldown_epochs = 1;
  fit_config(config, 7, 5);  // two halves of 3.5 steps
  CHECK(config.schedule.warmup_epochs == doctest::Approx(4.0 / 5));
  CHECK(config.schedule.cooldown_epochs == doctest::Approx(3.0 / 5));
}

TEST_CASE("a run that turns out slower than it was planned ends early, with a decayed rate") {
  const TemporaryFolder folder;
  const double lowest = 1e-5;
  const SmallRun run =
      small_run({{"model", small_vit},
                 {"epochs", 1000000},
                 {"eval_every", 1000000},
                 {"schedule", {{"warmup_epochs", 500000}, {"cooldown_epochs", 1000}, {"min_lr", lowest}}}});
  CHECK(train_in(folder / "run", run, {.budget = 2}) == Ending::finished);
  const TrainConfig fitted =
      read_train_config(read_json(folder / "run/config.json"), (folder / "run/config.json").string());
  CHECK(fitted.steps > 0);
  CHECK(fitted.schedule.warmup_epochs * 3 < static_cast<double>(fitted.steps));
  CHECK(fitted.epochs == (fitted.steps + 2) / 3);
  const std::string metrics = bytes_of(folder / "run/metrics.csv");
  CHECK(last_number(metrics, 1) == static_cast<double>(fitted.steps));
  CHECK(last_number(metrics, 2) < lowest + 0.1 * (fitted.optimizer.lr - lowest));
}
