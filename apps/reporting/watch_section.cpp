#include "apps/reporting/watch_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "apps/reporting/chart.h"
#include "apps/reporting/html.h"
#include "apps/reporting/watch_record.h"

namespace tessera {

namespace {

struct Panel {
  const char* title;
  const char* note;
  double LayerFigures::*value;
  Axis y;
};

const std::vector<Panel>& panels() {
  static const std::vector<Panel> all{
      {"Activations",
       "RMS of what each layer gives to the next one",
       &LayerFigures::activation_rms,
       {"RMS", NumberStyle::plain, true}},
      {"Gradients",
       "RMS of the loss's gradient at what each layer gives, loss a unit of activation",
       &LayerFigures::gradient_rms,
       {"RMS", NumberStyle::plain, true}},
      {"Weights",
       "RMS of each layer's parameters",
       &LayerFigures::weight_rms,
       {"RMS", NumberStyle::plain, true}},
      {"Gradients of the weights",
       "RMS, before clipping, loss a unit of weight",
       &LayerFigures::weight_gradient_rms,
       {"RMS", NumberStyle::plain, true}},
      {"Update : weight",
       "how far a step moves a layer, as a part of its weights; 0.001 is usual",
       &LayerFigures::update_ratio,
       {"ratio", NumberStyle::plain, true}},
      {"Temperatures",
       "1 / scale of the scores that each head has learned (LSA)",
       &LayerFigures::temperature,
       {"temperature", NumberStyle::plain}},
      {"Gates",
       "mean of each head's content-aware gate: 1 lets far tokens through, 0 none",
       &LayerFigures::gate,
       {"gate", NumberStyle::percent}},
  };
  return all;
}

constexpr size_t most_steps = 250;  // that a chart draws
constexpr size_t most_named = 8;    // lines of heads that a legend tells apart
constexpr size_t most_lines = 24;   // for heads of their own

// Leaves one of several watched steps, and the last, so that a long run's page stays small. Returns of how
// many.
size_t thin(std::vector<WatchRow>& rows) {
  std::vector<int64_t> steps;
  for (const WatchRow& row : rows)
    if (steps.empty() || steps.back() != row.step) steps.push_back(row.step);
  const size_t every = (steps.size() + most_steps - 1) / most_steps;
  if (every <= 1) return 1;
  std::vector<int64_t> kept;
  for (size_t i = 0; i < steps.size(); ++i)
    if (i % every == 0 || i + 1 == steps.size()) kept.push_back(steps[i]);
  std::erase_if(rows, [&](const WatchRow& row) { return !std::ranges::binary_search(kept, row.step); });
  return every;
}

// The layers of the first watched step, in the order of the file; each has a colour in all charts.
std::vector<std::string> layers_of(const std::vector<WatchRow>& rows) {
  std::vector<std::string> layers;
  for (const WatchRow& row : rows)
    if (row.figures.head < 0 && row.step == rows.front().step) layers.push_back(row.figures.layer);
  return layers;
}

double place_of(const std::string& layer, const std::vector<std::string>& layers) {
  const auto found = std::ranges::find(layers, layer_of(layer));
  if (found == layers.end() || layers.size() == 1) return 0;
  return static_cast<double>(found - layers.begin()) / static_cast<double>(layers.size() - 1);
}

// A line for each layer or head that has this number. `mean`: one for all heads of a layer.
std::vector<Series> lines_of(const std::vector<WatchRow>& rows, double LayerFigures::*value, bool mean) {
  const std::vector<std::string> layers = layers_of(rows);
  std::vector<Series> lines;
  int64_t count = 0;  // of the numbers in the last point
  for (const auto& [step, f] : rows) {
    const double x = static_cast<double>(step), y = f.*value;
    if (!std::isfinite(y)) continue;
    const std::string name = f.head < 0 || mean ? f.layer : fmt::format("{}, head {}", f.layer, f.head);
    const auto found = std::ranges::find(lines, name, &Series::name);
    Series& line =
        found == lines.end()
            ? lines.emplace_back(Series{.name = name, .x = {}, .y = {}, .place = place_of(f.layer, layers)})
            : *found;
    if (line.x.empty() || line.x.back() != x) {
      line.x.push_back(x);
      line.y.push_back(y);
      count = 1;
    } else {
      line.y.back() += (y - line.y.back()) / static_cast<double>(++count);
    }
  }
  return lines;
}

// Heads that are more than a legend can name have each layer's mean in their place, before which the heads
// are drawn thin and pale while they are not too many. Returns the words for it; none where all lines stay.
std::string summarise_heads(std::vector<Series>& lines, const std::vector<WatchRow>& rows,
                            double LayerFigures::*value) {
  if (lines.size() <= most_named) return "";
  std::vector<Series> means = lines_of(rows, value, true);
  if (means.size() == lines.size()) return "";
  const bool drawn = lines.size() <= most_lines;
  if (!drawn) lines.clear();
  for (Series& line : lines) {
    line.faint = true;
    line.listed = false;
  }
  std::ranges::move(means, std::back_inserter(lines));
  return drawn ? "; the mean over each layer's heads, and thin and pale each head"
               : "; the mean over each layer's heads, watch.csv has every head";
}

std::string card_of(const Panel& panel, const std::vector<WatchRow>& rows) {
  Chart chart{
      .x = {"step", NumberStyle::integer}, .y = panel.y, .series = lines_of(rows, panel.value, false)};
  if (chart.series.empty()) return "";
  const std::string note = panel.note + summarise_heads(chart.series, rows, panel.value);
  return card(panel.title, note, chart_html(chart));
}

}  // namespace

std::string watch_section(const RunRecord& run) {
  std::vector<WatchRow> rows = read_watch_file(run.path);
  const size_t every = thin(rows);
  std::vector<std::string> all;
  for (const Panel& panel : panels())
    if (std::string html = card_of(panel, rows); !html.empty()) all.push_back(std::move(html));
  if (all.empty()) return "";
  const std::string note =
      every == 1
          ? ""
          : fmt::format("<p class=\"note\">One of {} watched steps is drawn; watch.csv has them all.</p>\n",
                        every);
  return heading("Layers") + note + cards(all);
}

}  // namespace tessera
