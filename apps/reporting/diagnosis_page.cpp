#include "apps/reporting/diagnosis_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/reporting/chart.h"
#include "apps/reporting/html.h"
#include "apps/reporting/overlay.h"

namespace tessera {

namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// One point for each layer with values: its number, from 1, and their mean over the heads.
using Values = std::vector<double> LayerDiagnosis::*;
Series by_depth(const DiagnosedRun& run, Values values, int color) {
  Series series{.name = run.name, .x = {}, .y = {}, .color = color};
  for (size_t l = 0; l < run.layers.size(); ++l)
    if (const auto& of_heads = run.layers[l].*values; !of_heads.empty()) {
      series.x.push_back(static_cast<double>(l + 1));
      series.y.push_back(mean_of(of_heads));
    }
  return series;
}

Chart by_depth(const std::vector<DiagnosedRun>& runs, Values values, const char* label) {
  Chart chart{.x = {"layer", NumberStyle::integer}, .y = {label}};
  for (size_t r = 0; r < runs.size(); ++r)
    chart.series.push_back(by_depth(runs[r], values, static_cast<int>(r % 8)));
  return chart;
}

// sqrt(d) of each run's layers; runs with the same one share a line.
void add_standard(const std::vector<DiagnosedRun>& runs, Chart& chart) {
  std::vector<std::vector<double>> seen;
  for (const DiagnosedRun& run : runs) {
    Series series{.name = "sqrt(d)", .x = {}, .y = {}, .dashed = true, .color = 7};
    for (size_t l = 0; l < run.layers.size(); ++l)
      if (run.layers[l].sqrt_width > 0) {
        series.x.push_back(static_cast<double>(l + 1));
        series.y.push_back(run.layers[l].sqrt_width);
      }
    if (series.y.empty() || std::find(seen.begin(), seen.end(), series.y) != seen.end()) continue;
    seen.push_back(series.y);
    if (seen.size() > 1) series.name += " of " + run.name;
    chart.series.push_back(series);
  }
}

// A row for each layer: the values of its heads and their mean.
std::string head_table(const DiagnosedRun& run, Values values) {
  std::vector<std::vector<std::string>> rows;
  for (size_t l = 0; l < run.layers.size(); ++l) {
    const LayerDiagnosis& layer = run.layers[l];
    if ((layer.*values).empty()) continue;
    std::string heads;
    for (const double v : layer.*values) heads += fmt::format("{:.4f} ", v);
    rows.push_back({std::to_string(l + 1), escaped(layer.path),
                    layer.sqrt_width > 0 ? fmt::format("{:.4f}", layer.sqrt_width) : "-",
                    fmt::format("{:.4f}", mean_of(layer.*values)), heads});
  }
  return html_table({"#layer", "module", "#sqrt(d)", "#mean", "heads"}, rows);
}

std::string head_tables(const std::vector<DiagnosedRun>& runs, Values values) {
  std::string all;
  for (const DiagnosedRun& run : runs) all += collapsible("By head: " + run.name, head_table(run, values));
  return all;
}

// A matrix [rows, columns] as a picture: white is its smallest value, dark blue its largest.
std::string matrix_cell(const double* values, int64_t rows, int64_t columns, const std::string& what) {
  const auto [low, high] = std::minmax_element(values, values + rows * columns);
  const double range = *high - *low;
  Image image(static_cast<int>(rows), static_cast<int>(columns));
  constexpr double white[] = {250, 250, 248}, blue[] = {16, 52, 110};
  for (int64_t i = 0; i < rows * columns; ++i)
    for (int c = 0; c < 3; ++c) {
      const double share = range > 0 ? (values[i] - *low) / range : 0;
      image.at(static_cast<int>(i / columns), static_cast<int>(i % columns))[c] =
          static_cast<uint8_t>(std::lround(white[c] + share * (blue[c] - white[c])));
    }
  return picture(image, 96, what) +
         fmt::format("<br><span class=\"note\">{:.5g} to {:.5g}</span>", *low, *high);
}

std::vector<std::string> head_columns(int64_t heads) {
  std::vector<std::string> columns{"module"};
  for (int64_t h = 1; h <= heads; ++h) columns.push_back(fmt::format("head {}", h));
  return columns;
}

std::vector<std::string> matrix_row(const std::string& path, const Tensor& matrices, const char* what,
                                    const std::string& remark = "") {
  std::vector<std::string> row{escaped(path) + remark};
  const int64_t rows = matrices.dim(1), columns = matrices.dim(2);
  for (int64_t h = 0; h < matrices.dim(0); ++h)
    row.push_back(matrix_cell(matrices.data<double>() + h * rows * columns, rows, columns,
                              fmt::format("{} of {}, head {}", what, path, h + 1)));
  return row;
}

// A card of matrices: a row for each module, a column for each head.
std::string matrices_card(const std::string& title, const std::string& note,
                          std::vector<std::vector<std::string>> rows) {
  size_t most = 0;
  for (const auto& row : rows) most = std::max(most, row.size());
  for (auto& row : rows) row.resize(most);
  return card(title, note, html_table(head_columns(static_cast<int64_t>(most) - 1), rows), true);
}

std::string priors_section(const std::vector<DiagnosedRun>& runs) {
  std::vector<std::string> list;
  for (const DiagnosedRun& run : runs) {
    std::vector<std::vector<std::string>> rows;
    for (const PriorDiagnosis& prior : run.priors)
      rows.push_back(matrix_row(prior.path, prior.omega, "prior"));
    if (!rows.empty())
      list.push_back(
          matrices_card(run.name,
                        "The middle is the query itself; a place right of it is a key that many grid steps "
                        "to the right. White is the smallest factor, dark the largest.",
                        rows));
  }
  return list.empty()
             ? ""
             : heading("Learned spatial priors (SP-SA), the factor of a score by offset") + cards(list);
}

constexpr const char* decomposed_remark =
    "<br><span class=\"note\">decomposed into rows and columns: entries outside of the query's own row and "
    "column are not used</span>";

std::string decays_section(const std::vector<DiagnosedRun>& runs) {
  std::vector<std::string> list;
  for (const DiagnosedRun& run : runs) {
    std::vector<std::vector<std::string>> rows;
    for (const LayerDiagnosis& layer : run.layers)
      if (layer.decay.defined())
        rows.push_back(
            matrix_row(layer.path, layer.decay, "decay", layer.decomposed ? decomposed_remark : ""));
    if (!rows.empty())
      list.push_back(
          matrices_card(run.name,
                        "What is added to the score of each token of the grid for one query. Dark is the "
                        "largest, where nothing decays; white the smallest.",
                        rows));
  }
  return list.empty() ? "" : heading("Spatial decay around the query, first picture") + cards(list);
}

std::string pictures_section(const std::vector<ComparedPicture>& pictures) {
  if (pictures.empty()) return "";
  std::string sheets;
  for (const ComparedPicture& p : pictures) {
    const Image sheet = overlay(p.image, p.maps, {}, p.name, "");
    std::string names;
    for (const NamedMap& map : p.maps) names += (names.empty() ? "" : ", ") + map.name;
    sheets += picture(sheet, sheet.height * 2 / 3, p.name + ": attention of " + names);
  }
  return heading("Where each run looks") +
         cards({card("Attention of the last layer, mean over the heads",
                     "From left to right: the picture, then each run that was measured on it. From the class "
                     "token, or the mean over all tokens in a model without one; bright and warm is where "
                     "the map is high.",
                     sheets, true)});
}

}  // namespace

std::string diagnosis_page(const std::vector<DiagnosedRun>& runs,
                           const std::vector<ComparedPicture>& pictures) {
  Chart temperature = by_depth(runs, &LayerDiagnosis::temperature, "temperature, mean over heads");
  add_standard(runs, temperature);
  const Chart divergence = by_depth(runs, &LayerDiagnosis::divergence, "divergence in nats, mean over heads");
  std::string lead = "<h1>What attention has learned</h1>";
  for (const DiagnosedRun& run : runs)
    lead += "<p class=\"lead\"><b>" + escaped(run.name) + "</b>: " + escaped(run.measured_on) + "</p>";
  const std::string charts = cards(
      {card("Temperature of the softmax by depth",
            "tau of softmax(q k / tau). Dashed: sqrt(d), the temperature of a standard ViT. A lower one "
            "sharpens "
            "attention.",
            chart_html(temperature) + head_tables(runs, &LayerDiagnosis::temperature)),
       card(
           "Divergence of attention from uniform by depth",
           "Mean Kullback-Leibler divergence of the rows of attention from the uniform distribution over all "
           "keys. 0 is flat attention.",
           chart_html(divergence) + head_tables(runs, &LayerDiagnosis::divergence))});
  return page("What attention has learned",
              lead + charts + pictures_section(pictures) + priors_section(runs) + decays_section(runs));
}

}  // namespace tessera
