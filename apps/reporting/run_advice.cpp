#include "apps/reporting/run_advice.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "apps/training/progress.h"

namespace tessera {

namespace {

constexpr double worse_than_guessing = 1.5;  // times ln K, the loss of a model that knows nothing
constexpr double grown = 2;                  // times the lowest training loss
constexpr double memorised = 0.15;  // by so much is the accuracy on training pictures above validation
constexpr double waited = 0.2;      // share of the time

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += std::isfinite(v) ? v : 0;
  return sum;
}

int64_t classes_of(const RunRecord& run) { return run.config.at("model").value("num_classes", int64_t{0}); }

bool diverged(const RunRecord& run) {
  const std::vector<double> losses = run.column("train_loss");
  const double last = value_at(run, "train_loss", run.epochs());
  if (losses.empty() || !std::isfinite(last)) return !losses.empty();
  const double lowest = *std::min_element(losses.begin(), losses.end());
  if (last > grown * lowest) return true;
  const int64_t classes = classes_of(run);
  return run.task == Task::classify && classes > 1 &&
         last > worse_than_guessing * std::log(static_cast<double>(classes));
}

}  // namespace

std::string time_line(const RunRecord& run) {
  const double training = sum_of(run.epoch_events("seconds")),
               evaluation = sum_of(run.epoch_events("evaluation_seconds"));
  const Json rate = summary_of(run)["images_per_second"];
  return fmt::format("{} epoch{} in {}, {} of it evaluation{}", run.epochs(), run.epochs() == 1 ? "" : "s",
                     clock_text(training + evaluation), clock_text(evaluation),
                     rate.is_null() ? "" : fmt::format(", {:.0f} images/s", rate.get<double>()));
}

std::vector<std::string> advice_of(const RunRecord& run) {
  std::vector<std::string> advice;
  const int64_t epochs = run.epochs(), best = best_epoch(run);
  const double lr = run.config.at("optimizer").value("lr", 0.0);
  if (diverged(run)) {
    advice.push_back(fmt::format(
        "The training loss ended at {:.4g}, no better than guessing or far above its lowest: the run "
        "diverged. Try --lr {:.1e}, or --find-lr.",
        value_at(run, "train_loss", epochs), lr / 10));
    return advice;
  }
  const double known = value_at(run, "train_accuracy", epochs),
               unknown = value_at(run, "validation_top1", epochs);
  if (known - unknown > memorised)
    advice.push_back(fmt::format(
        "Accuracy is {:.0f} % on training and {:.0f} % on validation pictures: it learns them by heart. More "
        "augmentation (--set augment.cutmix=1), drop path (--set model.drop_path=0.2) or more pictures help.",
        100 * known, 100 * unknown));
  if (epochs > 2 && best == epochs)
    advice.push_back(
        fmt::format("The last epoch was the best: more of them (--epochs {}) may be better.", 2 * epochs));
  const double seconds = sum_of(run.epoch_events("seconds")), idle = sum_of(run.epoch_events("wait_seconds"));
  if (seconds > 1 && idle > waited * seconds)
    advice.push_back(
        fmt::format("{:.0f} % of the time went by waiting for pictures; tessera bench loader tells why.",
                    100 * idle / seconds));
  return advice;
}

}  // namespace tessera
