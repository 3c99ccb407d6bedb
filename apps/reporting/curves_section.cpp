#include "apps/reporting/curves_section.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "apps/reporting/chart.h"
#include "apps/reporting/html.h"

namespace tessera {

namespace {

// One curve of a run: a column of metrics.csv, a number of the epoch events, or one of the steps.
struct Curve {
  std::string name;
  const char* key = "";
  bool dashed = false;
  bool of_events = false;
  double StepRow::*of_steps = nullptr;
  bool where_no_epochs = false;  // of runs without a finished epoch alone
  int color = -1;                // the same in every chart of a single run; -1: the first
};

std::vector<double> values_of(const RunRecord& run, const Curve& curve) {
  return curve.of_events ? run.epoch_events(curve.key) : run.column(curve.key);
}

// The curve's points, x in epochs.
Series series_of(const RunRecord& run, const Curve& curve) {
  Series series{.name = curve.name, .x = {}, .y = {}, .color = std::max(curve.color, 0)};
  if (curve.of_steps != nullptr) {
    series.faint = curve.of_steps == &StepRow::loss;
    for (const StepRow& row : run.steps) {
      series.x.push_back(row.epoch);
      series.y.push_back(row.*curve.of_steps);
    }
    return series;
  }
  series.y = values_of(run, curve);
  for (size_t i = 0; i < series.y.size(); ++i) series.x.push_back(static_cast<double>(i + 1));
  return series;
}

bool any(const std::vector<double>& values) {
  return std::any_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

// Each curve of a single run has a colour, training's and validation's the same in all charts. With several
// runs each run has a colour, and all of its curves but the last are dashed.
Chart chart_of(std::span<const RunRecord> runs, const std::vector<Curve>& list, Axis y, bool marked) {
  const bool by_steps = std::ranges::any_of(list, [](const Curve& c) { return c.of_steps != nullptr; });
  Chart chart{.x = {"epoch", by_steps ? NumberStyle::plain : NumberStyle::integer}, .y = std::move(y)};
  for (size_t r = 0; r < runs.size(); ++r) {
    for (const Curve& curve : list) {
      Series series = series_of(runs[r], curve);
      if (!any(series.y) || (curve.where_no_epochs && !runs[r].rows.empty())) continue;
      if (runs.size() > 1) {
        series.color = static_cast<int>(r);
        series.dashed = curve.dashed;
        series.name = runs[r].name + (list.size() > 1 ? ", " + curve.name : "");
      }
      chart.series.push_back(std::move(series));
    }
  }
  if (runs.size() == 1 && marked)
    if (const int64_t best = best_epoch(runs[0]); best > 0)
      chart.mark = Mark{static_cast<double>(best), "best"};
  return chart;
}

// Whether an epoch spent more than a hundredth of its time waiting for pictures.
bool waits_for_data(const RunRecord& run) {
  const std::vector<double> waited = run.epoch_events("wait_seconds"), all = run.epoch_events("seconds");
  for (size_t i = 0; i < waited.size(); ++i)
    if (waited[i] > 0.01 * all[i]) return true;
  return false;
}

}  // namespace

std::string curves_section(std::span<const RunRecord> runs) {
  const bool several = runs.size() > 1;
  std::vector<std::string> all;
  const auto add = [&](const char* title, const std::string& note, const std::vector<Curve>& list, Axis y) {
    const Chart chart =
        chart_of(runs, list, std::move(y), std::string_view(list.back().key).starts_with("validation"));
    if (!chart.series.empty()) all.push_back(card(title, note, chart_html(chart)));
  };
  const bool stepwise = std::ranges::any_of(runs, [](const RunRecord& run) { return !run.steps.empty(); });
  // Several runs' losses of each step would cover one another.
  constexpr int of_training = 0, of_validation = 1, of_top5 = 2;
  const Curve each_step{
      .name = "each step", .of_steps = &StepRow::loss, .where_no_epochs = several, .color = of_training};
  const auto training = [](const char* key) {
    return Curve{.name = "training", .key = key, .dashed = true, .color = of_training};
  };
  const auto validation = [](const char* key) {
    return Curve{.name = "validation", .key = key, .color = of_validation};
  };
  const std::vector<Curve> losses{each_step, training("train_loss"), validation("validation_loss")};
  add("Loss", several ? "training dashed, validation solid" : "", losses, {"loss"});
  const Axis share{runs.front().task == Task::segment ? "mean IoU" : "accuracy", NumberStyle::percent};
  std::vector<Curve> accuracy{training("train_accuracy"), validation("validation_top1")};
  constexpr int64_t many_classes = 10;  // the top five of fewer are nearly all of them
  const Json classes = runs.front().config.at("model").value("num_classes", Json());
  if (!several && classes.is_number() && classes.get<double>() > many_classes)
    accuracy.push_back({.name = "validation, top-5", .key = "validation_top5", .color = of_top5});
  switch (runs.front().task) {
    case Task::classify:
      add("Accuracy", several ? "training dashed, validation solid" : "", accuracy, share);
      break;
    case Task::segment:
      add("Mean IoU", "", {{.name = "mean IoU", .key = "validation_mean_iou", .color = of_validation}},
          share);
      add("Pixels", "the share of pixels with the right class",
          {{.name = "right pixels", .key = "validation_pixel_accuracy", .color = of_validation}},
          {"pixels", NumberStyle::percent});
      break;
    case Task::diffuse:
      break;
  }
  if (stepwise)
    add("Learning rate", "", {{.name = "learning rate", .of_steps = &StepRow::lr}}, {"learning rate"});
  else
    add("Learning rate", "at the last step of each epoch", {{"learning rate", "lr"}}, {"learning rate"});
  add("Throughput", "training images a second", {{"images/s", "images_per_second", false, true}},
      {"images/s"});
  const std::string norm = "of all parameters together, before clipping";
  if (stepwise)
    add("Gradient norm", norm, {{.name = "gradient norm", .of_steps = &StepRow::gradient_norm}}, {"norm"});
  else
    add("Gradient norm", norm + ", mean over the epoch", {{"gradient norm", "gradient_norm"}}, {"norm"});
  if (std::ranges::any_of(runs, waits_for_data))
    add("Waiting for data", "seconds of an epoch in which training waited for pictures",
        {{"seconds", "wait_seconds", false, true}}, {"seconds"});
  return heading("Curves") + cards(all);
}

}  // namespace tessera
