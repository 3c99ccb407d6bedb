#include "apps/reporting/rate_finder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/reporting/chart.h"
#include "apps/reporting/html.h"
#include "apps/reporting/table.h"
#include "apps/training/trainer.h"
#include "engine/core/error.h"
#include "engine/io/file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr double smoothing = 0.8;        // decay of the weights in smooth(), and of the running mean
constexpr double shown_up_to = 1.5;      // times the first loss; more counts as so much
constexpr double climbed = 0.1;          // share of its fall that the loss has lost again at the turn
constexpr double diverged_at = 4;        // times the lowest running mean of the loss
constexpr int64_t rows_for_people = 20;  // a longer table is thinned out to about so many

std::string as_learning_rate(const Json& value) { return fmt::format("{:.2e}", value.get<double>()); }
std::string as_loss(const Json& value) {
  return value.is_null() ? "-" : fmt::format("{:.4f}", value.get<double>());
}

constexpr Column columns[] = {{"lr", "lr", as_learning_rate},
                              {"loss", "loss", as_loss},
                              {"smoothed", "smoothed", as_loss},
                              {"note", "note"}};

Json rows_of(const RateCurve& curve) {
  Json rows = Json::array();
  for (size_t i = 0; i < curve.rates.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    rows.push_back({{"lr", curve.rates[i]}, {"loss", curve.losses[i]}, {"smoothed", curve.smoothed[i]}});
    if (at == curve.lowest) rows.back()["note"] = "lowest";
    if (at == curve.turn) rows.back()["note"] = "too high";
  }
  return rows;
}

// Keeps about rows_for_people rows, evenly spaced, and those with a note.
Json shortened(const Json& rows) {
  const auto count = static_cast<int64_t>(rows.size());
  const int64_t every = (count + rows_for_people - 1) / rows_for_people;
  Json some = Json::array();
  for (int64_t i = 0; i < count; ++i) {
    const Json& row = rows[static_cast<size_t>(i)];
    if (i % every != 0 && i != count - 1 && !row.contains("note")) continue;
    some.push_back(row);
    some.back()["note"] = row.value("note", "");
  }
  return some;
}

std::string drawing_of(const RateCurve& curve, const std::string& suggestion) {
  // A loss far above the first one would set the axis alone.
  const auto clipped = [&](std::vector<double> values) {
    for (double& v : values)
      if (v > shown_up_to * curve.losses.front()) v = std::nan("");
    return values;
  };
  Chart chart{.x = {.label = "learning rate", .logarithmic = true}, .y = {.label = "training loss"}};
  chart.series = {{.name = "loss", .x = curve.rates, .y = clipped(curve.losses), .dashed = true},
                  {.name = "smoothed", .x = curve.rates, .y = clipped(curve.smoothed)}};
  if (curve.turn >= 0) chart.mark = Mark{curve.suggestion(), "suggestion"};
  return page("Learning rates", card("Loss as the learning rate grows", suggestion, chart_html(chart), true));
}

std::string suggestion_of(const RateCurve& curve) {
  if (curve.turn < 0)
    return "The loss never fell, so there is no suggestion. Are the labels right? Is the batch too small?";
  return fmt::format(
      "Suggestion: --lr {:.1e}, a tenth of {:.1e}, where the loss has climbed a tenth of its fall{}.",
      curve.suggestion(), curve.rates[static_cast<size_t>(curve.turn)],
      curve.diverged ? fmt::format("; beyond {:.1e} it diverges", curve.rates.back()) : "");
}

}  // namespace

std::vector<double> smooth(const std::vector<double>& values, double decay) {
  std::vector<double> smoothed(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    double sum = 0, weights = 0;
    for (size_t j = 0; j < values.size(); ++j) {
      const double weight = std::pow(decay, std::abs(static_cast<double>(i) - static_cast<double>(j)));
      sum += weight * values[j];
      weights += weight;
    }
    smoothed[i] = sum / weights;
  }
  return smoothed;
}

void analyse_curve(RateCurve& curve) {
  std::vector<double> losses =
      curve.losses;  // a loss far above the first would set its neighbours' means alone
  for (double& loss : losses) loss = std::min(loss, shown_up_to * losses.front());
  curve.smoothed = smooth(losses, smoothing);
  const std::vector<double>& y = curve.smoothed;
  if (y.size() < 3) return;
  const int64_t lowest = std::min_element(y.begin(), y.end()) - y.begin();
  const double fall = y.front() - y[static_cast<size_t>(lowest)];
  if (fall <= 0) return;
  curve.lowest = lowest;
  curve.turn = lowest;
  while (curve.turn + 1 < std::ssize(y) &&
         y[static_cast<size_t>(curve.turn)] < y[static_cast<size_t>(lowest)] + climbed * fall)
    ++curve.turn;
}

RateCurve sweep_rates(Trainer& trainer, const RateSweep& sweep) {
  RateCurve curve;
  double mean = 0, best = 0;
  for (int64_t k = 0; k < sweep.steps && !curve.diverged; ++k) {
    const double way = static_cast<double>(k) / static_cast<double>(std::max<int64_t>(sweep.steps - 1, 1));
    const double rate = sweep.lowest * std::pow(sweep.highest / sweep.lowest, way);
    const double loss = trainer.try_learning_rate(rate);
    curve.diverged = !std::isfinite(loss);
    if (curve.diverged) break;
    mean = k == 0 ? loss : smoothing * mean + (1 - smoothing) * loss;
    best = k == 0 ? mean : std::min(best, mean);
    curve.rates.push_back(rate);
    curve.losses.push_back(loss);
    curve.diverged = mean > diverged_at * best;
  }
  analyse_curve(curve);
  return curve;
}

void find_lr(Trainer& trainer, const fs::path& folder, bool json) {
  const fs::path plot = folder.empty() ? fs::path() : folder / "find-lr.html";
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error);
  check(!error, folder.string(), ": the folder cannot be made: ", error.message());
  const RateCurve curve = sweep_rates(trainer, {});
  const std::string suggestion = suggestion_of(curve);
  const Json rows = rows_of(curve);
  if (!folder.empty()) write_file_atomically(plot, drawing_of(curve, suggestion));
  if (json) {
    Json result{{"rows", rows},
                {"diverged", curve.diverged},
                {"suggestion", nullptr},
                {"plot", folder.empty() ? Json() : Json(plot.string())}};
    if (curve.turn >= 0) result["suggestion"] = curve.suggestion();
    print_json(result);
    return;
  }
  print_table(columns, shortened(rows));
  fmt::print("\n{}\nThe curve is drawn in {}\n", suggestion, plot.string());
}

}  // namespace tessera
