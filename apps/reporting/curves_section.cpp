#include "apps/reporting/curves_section.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "apps/reporting/chart.h"
#include "apps/reporting/html.h"

namespace tessera {

namespace {

// One curve of a run: a column of metrics.csv, or a number of the epoch events.
struct Curve {
  std::string name;
  const char* key;
  bool dashed = false;
  bool of_events = false;
};

std::vector<double> values_of(const RunRecord& run, const Curve& curve) {
  return curve.of_events ? run.epoch_events(curve.key) : run.column(curve.key);
}

bool any(const std::vector<double>& values) {
  return std::any_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

// Each curve of a single run has a colour. With several runs each run has a colour, and all of its curves but
// the last are dashed.
Chart chart_of(std::span<const RunRecord> runs, const std::vector<Curve>& list, Axis y, bool marked) {
  Chart chart{.x = {"epoch", NumberStyle::integer}, .y = std::move(y)};
  for (size_t r = 0; r < runs.size(); ++r) {
    std::vector<double> epochs(static_cast<size_t>(runs[r].epochs()));
    for (size_t i = 0; i < epochs.size(); ++i) epochs[i] = static_cast<double>(i + 1);
    for (const Curve& curve : list) {
      std::vector<double> values = values_of(runs[r], curve);
      if (!any(values)) continue;
      Series series{curve.name, epochs, std::move(values)};
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
  add("Loss", several ? "training dashed, validation solid" : "",
      {{"training", "train_loss", true}, {"validation", "validation_loss"}}, {"loss"});
  const Axis share{runs.front().task == Task::segment ? "mean IoU" : "accuracy", NumberStyle::percent};
  std::vector<Curve> accuracy{{"training", "train_accuracy", true}, {"validation", "validation_top1"}};
  constexpr int64_t many_classes = 10;  // the top five of fewer are nearly all of them
  const Json classes = runs.front().config.at("model").value("num_classes", Json());
  if (!several && classes.is_number() && classes.get<double>() > many_classes)
    accuracy.push_back({"validation, top-5", "validation_top5"});
  switch (runs.front().task) {
    case Task::classify:
      add("Accuracy", several ? "training dashed, validation solid" : "", accuracy, share);
      break;
    case Task::segment:
      add("Mean IoU", "", {{"mean IoU", "validation_mean_iou"}}, share);
      add("Pixels", "the share of pixels with the right class",
          {{"right pixels", "validation_pixel_accuracy"}}, {"pixels", NumberStyle::percent});
      break;
    case Task::diffuse:
      break;
  }
  add("Learning rate", "at the last step of each epoch", {{"learning rate", "lr"}}, {"learning rate"});
  add("Throughput", "training images a second", {{"images/s", "images_per_second", false, true}},
      {"images/s"});
  add("Gradient norm", "of all parameters together, before clipping, mean over the epoch",
      {{"gradient norm", "gradient_norm"}}, {"norm"});
  if (std::ranges::any_of(runs, waits_for_data))
    add("Waiting for data", "seconds of an epoch in which training waited for pictures",
        {{"seconds", "wait_seconds", false, true}}, {"seconds"});
  return heading("Curves") + cards(all);
}

}  // namespace tessera
