#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/model_bench.h"
#include "apps/options/options.h"
#include "apps/options/output_file.h"
#include "apps/reporting/measuring.h"
#include "apps/reporting/published_runs.h"
#include "apps/reporting/published_table.h"
#include "apps/reporting/table.h"
#include "engine/core/error.h"
#include "engine/core/frozen_weights.h"
#include "engine/core/parallel.h"
#include "engine/core/printable.h"
#include "engine/io/file.h"
#include "models/model.h"
#include "models/presets.h"

namespace tessera {

namespace {

constexpr int64_t image_size = 64, classes = 200;  // Tiny-ImageNet, as the paper measures

struct Options {
  ModelBench bench;
  std::string runs, out = "table.html", csv;
  std::vector<std::string> models;
  bool speed = true;
};

// Images a second of the forward pass in evaluation.
double throughput(const ModelBench& bench, const Json& config) {
  const Model model = bench.build_model(config);
  const Tensor images = bench.images(model);
  const FrozenWeights frozen(model.parameters.state());
  Pass pass{.answer_only = true};
  const auto step = [&] { model.logits(images, pass).to(Device::cpu); };
  for (int64_t i = 0; i < bench.warmup; ++i) step();
  std::vector<double> seconds;
  for (int64_t i = 0; i < bench.steps; ++i) {
    const Stopwatch watch;
    step();
    seconds.push_back(watch.seconds());
  }
  return static_cast<double>(bench.batch) / median(seconds);
}

Json row_of(const PublishedRow& paper, const Json& runs, const Options& options) {
  const Json config = preset(paper.model, image_size, classes);
  const Cost cost = cost_of(config);
  if (options.speed && !options.bench.json) fmt::print(stderr, "measuring {}\n", paper.model);
  const Json speed = options.speed ? Json(throughput(options.bench, config)) : Json();
  return compared_row(paper, runs, cost.parameters, cost.macs, speed);
}

std::string measured_on(const Options& options) {
  if (!options.speed) return "The throughput was not measured.";
  return fmt::format(
      "Throughput here: {} images a batch, {}, {}.", options.bench.batch, name(options.bench.dtype),
      options.bench.device == Device::cpu ? fmt::format("{} threads of this machine", threads())
                                          : "this machine's GPU");
}

void print_for_people(const Json& rows) {
  constexpr Column columns[] = {{"about", "model"},
                                {"parameters", "parameters", as_metric},
                                {"paper_parameters", "paper", as_metric},
                                {"macs", "MACs", as_metric},
                                {"paper_macs", "paper", as_metric},
                                {"images_per_second", "images/s", as_rate},
                                {"paper_images_per_second", "paper", as_rate}};
  Json flat = rows, accuracies = Json::array();
  for (Json& row : flat) {
    for (const char* key : {"parameters", "macs", "images_per_second"})
      row[std::string("paper_") + key] = row["paper"][key];
    Json accuracy{{"about", row["about"]}};
    for (const std::string& dataset : published_datasets())
      accuracy[dataset] = fmt::format("{} | {:.2f}", accuracy_text(row["accuracy"][dataset]),
                                      row["paper"]["top1"].at(dataset).get<double>());
    accuracies.push_back(std::move(accuracy));
  }
  print_table(columns, flat);
  fmt::print("\nTop-1 accuracy in %, here | in the paper\n\n");
  std::vector<Column> scores{{"about", "model"}};
  for (const std::string& dataset : published_datasets())
    scores.push_back({dataset.c_str(), dataset.c_str()});
  print_table(scores, accuracies);
}

// Every name that is given is a row's.
void check_models(const std::vector<std::string>& given) {
  std::vector<std::string> known;
  std::string names;
  for (const PublishedRow& row : published_rows()) {
    known.push_back(row.model);
    names += (names.empty() ? "" : ", ") + row.model;
  }
  for (const std::string& name : given)
    check(std::ranges::find(known, name) != known.end(), "bench table: --models ", name,
          " is no row of the paper's table", did_you_mean(name, known), "; the rows are ", names);
}

Json left_out(const Json& runs) {
  Json rows = Json::array();
  for (const Json& run : runs)
    if (run.contains("left_out")) rows.push_back({{"run", run["run"]}, {"reason", run["left_out"]}});
  return rows;
}

ExitCode run(const Options& options) {
  check_models(options.models);
  expect_output("bench table: --out", options.out);
  expect_output("bench table: --csv", options.csv);
  const RunList list = options.runs.empty() ? RunList() : list_runs(options.runs);
  for (const std::string& why : list.warnings) fmt::print(stderr, "warning: {}\n", printable(why));
  const Json runs = runs_for_table(list);
  Json rows = Json::array();
  for (const PublishedRow& paper : published_rows())
    if (options.models.empty() || std::ranges::find(options.models, paper.model) != options.models.end())
      rows.push_back(row_of(paper, runs, options));
  write_file_atomically(options.out, compared_page(rows, measured_on(options)));
  if (!options.csv.empty()) write_file_atomically(options.csv, compared_csv(rows));
  if (options.bench.json) {
    print_json({{"page", options.out},
                {"measured", measured_on(options)},
                {"rows", rows},
                {"left_out", left_out(runs)}});
    return ExitCode::done;
  }
  print_for_people(rows);
  if (const std::string line = left_out_line(runs); !line.empty())
    fmt::print(stderr, "tessera: bench table: {}\n", printable(line));
  fmt::print("\n{} The page is {}\n", measured_on(options), options.out);
  return ExitCode::done;
}

}  // namespace

void add_bench_table(Command& bench) {
  Command& command = add_command(
      bench, "table",
      "Table 2 and figure 1 of SL-ViT: size, cost, throughput and accuracy beside the paper's.",
      {"tessera bench table --runs runs", "tessera bench table --no-speed --models vit,sl-vit --json"},
      "Every model of the paper's table at 64 x 64 pixels and 200 classes: parameters, multiply-accumulates, "
      "the throughput of its forward pass on this machine, and the best top-1 accuracy of the runs of a "
      "folder, "
      "their mean and deviation where there are several. A run counts where model and data are the row's, on "
      "all of the pictures; the others are named.");
  const auto options = std::make_shared<Options>();
  options->bench.steps = 5;
  options->bench.warmup = 1;
  command.add_option("--runs", options->runs, "A folder with runs, whose accuracies are shown")
      ->type_name("DIR");
  command.add_option("--models", options->models, "Only these presets of the table")
      ->delimiter(',')
      ->type_name("NAME,...");
  command.add_flag("!--no-speed", options->speed, "Do not measure the throughput");
  command.add_option("--out", options->out, "The page that is written")
      ->capture_default_str()
      ->type_name("FILE");
  command.add_option("--csv", options->csv, "Write the numbers into this file too")->type_name("FILE");
  options->bench.add_run_to(command, {DType::f32, DType::f64, DType::bf16});
  on_run(command, [options] { return run(*options); });
}

}  // namespace tessera
