#include "apps/reporting/published_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/reporting/ablation.h"
#include "apps/reporting/chart.h"
#include "apps/reporting/html.h"
#include "apps/reporting/table.h"
#include "apps/training/csv.h"
#include "apps/training/recipe.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

constexpr const char* figure_dataset = "tiny-imagenet";

Json recipes_table() {
  for (const auto& [name, text] : recipe_files())
    if (name == "table-small-datasets") return parse_json(text, "recipe table-small-datasets");
  fail("recipe table-small-datasets: is not part of this program");
}

// "pit" of "sl-pit-spool": models of a family stand in one series of the figure.
std::string family_of(std::string model) {
  if (model.starts_with("sl-")) model.erase(0, 3);
  if (model.ends_with("-spool")) model.resize(model.size() - 6);
  return model;
}

// Accuracy by throughput, a series for each family: its first point is without what the paper proposes.
template <class Speed, class Accuracy> Chart figure(const Json& rows, Speed speed, Accuracy accuracy) {
  Chart chart{.x = {"images/s", NumberStyle::integer}, .y = {"top-1 on Tiny-ImageNet", NumberStyle::percent}};
  for (const Json& row : rows) {
    const Json x = speed(row), y = accuracy(row);
    if (x.is_null() || y.is_null()) continue;
    const std::string family = family_of(row["model"]);
    auto series = std::ranges::find(chart.series, family, &Series::name);
    if (series == chart.series.end())
      series = chart.series.insert(chart.series.end(), Series{.name = family, .x = {}, .y = {}});
    series->x.push_back(x.get<double>());
    series->y.push_back(y.get<double>());
  }
  return chart;
}

std::string published_figure(const Json& rows) {
  return chart_html(figure(
      rows, [](const Json& row) { return row["paper"]["images_per_second"]; },
      [](const Json& row) { return Json(row["paper"]["top1"].at(figure_dataset).get<double>() / 100); }));
}

std::string measured_figure(const Json& rows) {
  return chart_html(figure(
      rows, [](const Json& row) { return row["images_per_second"]; },
      [](const Json& row) {
        const Json& accuracy = row["accuracy"][figure_dataset];
        return accuracy.is_null() ? Json() : accuracy["mean"];
      }));
}

std::string or_dash(const Json& value, CellFormat format) { return value.is_null() ? "-" : format(value); }

std::string rate(const Json& value) {
  return or_dash(value, [](const Json& v) { return fmt::format("{:.0f}", v.get<double>()); });
}

}  // namespace

std::vector<PublishedRow> published_rows() {
  const Json table = recipes_table();
  std::vector<PublishedRow> rows;
  for (const auto& [model, entry] : table.at("models").items()) {
    if (!entry.contains("table2")) continue;
    const Json& numbers = entry["table2"];
    const std::string about = entry["about"];  // what differs from the paper follows in brackets
    const Json config = entry.value("config", Json::object());
    PublishedRow row{model,
                     about.substr(0, about.find(" (")),
                     config.value("model", Json{{"preset", model}}),
                     numbers["images_per_second"],
                     numbers["macs"],
                     numbers["parameters"],
                     {}};
    for (const auto& [dataset, top1] : entry["top1"].items()) row.top1[dataset] = top1;
    rows.push_back(std::move(row));
  }
  return rows;
}

const std::vector<std::string>& published_datasets() {
  static const std::vector<std::string> names{"cifar10", "cifar100", "svhn", figure_dataset};
  return names;
}

Json accuracy_of(const Json& runs, const std::string& model, const std::string& dataset) {
  std::vector<double> scores;
  Json epochs = Json::array();
  for (const Json& run : runs) {
    if (run["preset"] != model || run["dataset"] != dataset || !run["best"].is_number()) continue;
    scores.push_back(run["best"]);
    epochs.push_back(run["epochs"]);
  }
  if (scores.empty()) return {};
  const Spread spread = spread_of(scores);
  return {{"count", spread.count},
          {"mean", spread.mean},
          {"deviation", spread.deviation ? Json(*spread.deviation) : Json()},
          {"epochs", epochs}};
}

Json compared_row(const PublishedRow& paper, const Json& runs, int64_t parameters, int64_t macs,
                  const Json& images_per_second) {
  Json accuracy = Json::object();
  for (const std::string& dataset : published_datasets())
    accuracy[dataset] = accuracy_of(runs, paper.model, dataset);
  return {{"model", paper.model},
          {"about", paper.about},
          {"parameters", parameters},
          {"macs", macs},
          {"images_per_second", images_per_second},
          {"accuracy", accuracy},
          {"paper",
           {{"parameters", paper.parameters},
            {"macs", paper.macs},
            {"images_per_second", paper.images_per_second},
            {"top1", paper.top1}}}};
}

std::string accuracy_text(const Json& accuracy) {
  if (accuracy.is_null()) return "-";
  std::string text = fmt::format("{:.2f}", 100 * accuracy["mean"].get<double>());
  if (!accuracy["deviation"].is_null())
    text += fmt::format(" ± {:.2f}", 100 * accuracy["deviation"].get<double>());
  const auto [fewest, most] = std::ranges::minmax(accuracy["epochs"].get<std::vector<int64_t>>());
  text += fmt::format(" ({}{} epoch{}", fewest, fewest == most ? "" : fmt::format(" to {}", most),
                      most == 1 ? "" : "s");
  const int64_t count = accuracy["count"];
  return text + (count == 1 ? ")" : fmt::format(", {} runs)", count));
}

std::string compared_page(const Json& rows, const std::string& where) {
  std::vector<std::string> columns{"model",  "#parameters", "#paper", "#MACs",
                                   "#paper", "#images/s",   "#paper"};
  for (const std::string& dataset : published_datasets()) {
    columns.push_back("#" + dataset);
    columns.emplace_back("#paper");
  }
  std::vector<std::vector<std::string>> cells;
  for (const Json& row : rows) {
    const Json& paper = row["paper"];
    std::vector<std::string> line{escaped(row["about"].get<std::string>()),
                                  as_metric(row["parameters"]),
                                  as_metric(paper["parameters"]),
                                  as_metric(row["macs"]),
                                  as_metric(paper["macs"]),
                                  rate(row["images_per_second"]),
                                  rate(paper["images_per_second"])};
    for (const std::string& dataset : published_datasets()) {
      line.push_back(accuracy_text(row["accuracy"][dataset]));
      line.push_back(fmt::format("{:.2f}", paper["top1"].at(dataset).get<double>()));
    }
    cells.push_back(std::move(line));
  }
  const bool has_runs =
      std::ranges::any_of(rows, [](const Json& row) { return !row["accuracy"][figure_dataset].is_null(); });
  return page(
      "Table 2 of SL-ViT",
      heading("Vision Transformer for Small-Size Datasets, table 2 and figure 1") +
          cards({card("Table 2", "Top-1 accuracy in %, here the best of each run's validations. " + where,
                      html_table(columns, cells), true),
                 card("Figure 1, as published",
                      "An RTX 2080 Ti; a line leads from a model to what SPT and LSA make of it.",
                      published_figure(rows)),
                 card("Figure 1, here",
                      has_runs ? where : where + " No run on Tiny-ImageNet was found (--runs DIR).",
                      measured_figure(rows))}));
}

std::string compared_csv(const Json& rows) {
  std::vector<std::string> head{"model",      "parameters",        "paper_parameters",       "macs",
                                "paper_macs", "images_per_second", "paper_images_per_second"};
  for (const std::string& dataset : published_datasets())
    for (const char* what : {"", "_deviation", "_runs", "_paper"}) head.push_back(dataset + what);
  std::string text = csv_line(head);
  const auto cell = [](const Json& value) { return value.is_null() ? std::string() : value.dump(); };
  for (const Json& row : rows) {
    const Json& paper = row["paper"];
    std::vector<std::string> line{row["model"],
                                  cell(row["parameters"]),
                                  cell(paper["parameters"]),
                                  cell(row["macs"]),
                                  cell(paper["macs"]),
                                  cell(row["images_per_second"]),
                                  cell(paper["images_per_second"])};
    for (const std::string& dataset : published_datasets()) {
      const Json accuracy = row["accuracy"][dataset];
      for (const char* what : {"mean", "deviation", "count"})
        line.push_back(accuracy.is_null() ? "" : cell(accuracy[what]));
      line.push_back(cell(Json(paper["top1"].at(dataset).get<double>() / 100)));
    }
    text += csv_line(line);
  }
  return text;
}

}  // namespace tessera
