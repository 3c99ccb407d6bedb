#include "apps/training/time_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/training/run_parts.h"
#include "apps/training/trainer.h"
#include "apps/training/validation.h"

namespace tessera {

namespace {

constexpr double least_wait = 0.5;  // seconds between two looks at the clock, which get rarer earlier
constexpr double wait_share = 0.1;  // of the time that is left
constexpr double least_change =
    0.02;  // of the steps that are left; a smaller one is not worth a jump of the rate
constexpr int64_t first_steps = 5;  // a session's first steps take memory and are slower

double seconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

}  // namespace

int64_t steps_that_fit(double seconds, const Speed& speed, int64_t eval_every) {
  const double each =
      speed.step_seconds + speed.evaluation_seconds / static_cast<double>(speed.steps_in_epoch * eval_every);
  const double steps = std::floor((seconds - speed.evaluation_seconds) / each);
  return std::isfinite(steps) ? static_cast<int64_t>(std::clamp(steps, 1.0, 1e12)) : 1;
}

void fit_config(TrainConfig& config, int64_t steps, int64_t steps_in_epoch) {
  const double epochs = static_cast<double>(steps) / static_cast<double>(steps_in_epoch),
               before = config.steps > 0
                            ? static_cast<double>(config.steps) / static_cast<double>(steps_in_epoch)
                            : static_cast<double>(config.epochs);
  double left = static_cast<double>(steps);  // whole steps, as both parts rounded up may outgrow the run
  for (double* const part : {&config.schedule.warmup_epochs, &config.schedule.cooldown_epochs}) {
    const double part_steps = std::min(std::round(*part / before * static_cast<double>(steps)), left);
    left -= part_steps;
    *part = part_steps / static_cast<double>(steps_in_epoch);
  }
  config.steps = steps;
  config.epochs = std::max<int64_t>(1, std::llround(std::ceil(epochs)));
}

const std::vector<std::string>& fitted_keys() {
  static const std::vector<std::string> keys{"steps", "epochs", "schedule.warmup_epochs",
                                             "schedule.cooldown_epochs"};
  return keys;
}

Speed Trainer::measure_speed(double seconds) {
  const auto go_on = [](Clock::time_point began, double limit, int64_t& steps, int64_t least) {
    return steps++ < least || seconds_since(began) < limit;
  };
  int64_t warm = 0, steps = 0;
  take_steps([&] { return go_on(Clock::now(), 0, warm, 2); });
  const Clock::time_point began = Clock::now();
  const int64_t taken = take_steps([&] { return go_on(began, seconds, steps, 3); });
  Speed speed{seconds_since(began) / static_cast<double>(taken), 0, train_.batches()};
  int64_t images = 0;
  const Clock::time_point then = Clock::now();
  EvaluateOptions how = validation_options(config_, {.device = device_, .ranks = &ranks_});
  how.go_on = [&](int64_t done) {
    images = done;
    return images == 0 || seconds_since(then) < seconds;
  };
  const auto evaluation = evaluate(model_, *validation_, how);
  const double share =
      evaluation ? 1 : static_cast<double>(images) / static_cast<double>(validation_->images());
  speed.evaluation_seconds = seconds_since(then) / share;
  return speed;
}

// Looks at the clock now and then, and makes the run so long that it ends in time. Called between two steps.
void Trainer::fit_to_time(RunFolder& folder) {
  const int64_t taken = session_steps_ - std::ssize(under_way_),
                started = at_.epoch * train_.batches() + steps_started();
  const double elapsed = seconds_since(began_), left = stop_.budget - elapsed;
  if (stop_.budget <= 0 || taken < first_steps) return;
  if (seconds_since(fitted_) < std::max(least_wait, wait_share * left)) return;
  fitted_ = Clock::now();
  const Speed speed{(elapsed - evaluated_seconds_) / static_cast<double>(taken), evaluation_seconds_,
                    train_.batches()};
  const int64_t fitting = started + steps_that_fit(left, speed, config_.eval_every), before = total_steps();
  if (std::abs(static_cast<double>(fitting - before)) <= least_change * static_cast<double>(before - started))
    return;
  fit_config(config_, fitting, train_.batches());
  schedule_ = schedule_of(config_, train_.batches(), fitting);
  Json document = read_json(folder.config());
  document["steps"] = config_.steps;
  document["epochs"] = config_.epochs;
  document["schedule"]["warmup_epochs"] = config_.schedule.warmup_epochs;
  document["schedule"]["cooldown_epochs"] = config_.schedule.cooldown_epochs;
  write_json(folder.config(), document);
  folder.event("fitted", {{"step", started}, {"steps", fitting}, {"before", before}});
  if (progress_.verbosity() == Verbosity::verbose)
    progress_.note(fmt::format("to end in time the run takes {} steps in place of {}", fitting, before));
}

}  // namespace tessera
