// tessera report: a run as an HTML page; several runs side by side.

#include <fmt/core.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "apps/commands/commands.h"
#include "apps/options/options.h"
#include "apps/options/output_file.h"
#include "apps/options/validators.h"
#include "apps/reporting/run_list.h"
#include "apps/reporting/run_names.h"
#include "apps/reporting/run_report.h"
#include "apps/reporting/table.h"
#include "apps/training/config.h"
#include "apps/training/interrupt.h"
#include "data/registry.h"
#include "engine/core/error.h"
#include "engine/core/printable.h"
#include "engine/io/file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

struct Options {
  std::vector<std::string> runs;
  std::string out, data;
  int follow = 0;  // seconds between two pages; 0: one page
  bool json = false;
  Device device = Device::cpu;
};

// The page of one run. If its data set cannot be opened, the page leaves out what needs it; with --data
// given, that is an error.
std::string single_page(const RunRecord& run, const Options& options) {
  if (!has_weights(run.path))
    return run_page(run, nullptr, "The run has no weights yet: no classes and no pictures.", options.device);
  ReportSource source{read_checkpoint(run.path, options.device), {}};
  const TrainConfig config = read_train_config(run.config, (run.path / "config.json").string());
  DataConfig data = config.data;
  if (!options.data.empty()) check_folder(data.name, data.dir = options.data);
  try {
    source.dataset = open_data(data, run.task);
  } catch (const Error& error) {
    if (!options.data.empty()) throw;
    fmt::print(stderr, "tessera: {}; the report has no pictures, --data DIR says where they are\n",
               error.what());
    return run_page(run, nullptr, std::string("No classes and no pictures: ") + error.what(), options.device);
  }
  check(source.dataset.class_names == source.checkpoint.data.class_names, "report: ", data.name, " in ",
        data.dir, " has other classes than ", source.checkpoint.path.string(), " was trained on");
  return run_page(run, &source, "", options.device);
}

void print_summaries(const std::vector<RunRecord>& runs, bool json, const std::string& out) {
  Json rows = Json::array();
  for (const RunRecord& run : runs) rows.push_back(summary_of(run));
  if (json) return print_json({{"report", out}, {"runs", rows}});
  const CellFormat as_score = runs.front().task == Task::diffuse ? as_loss : as_percent;
  const Column columns[] = {{"run", "run"},
                            {"model", "model"},
                            {"dataset", "data"},
                            {"epochs", "epochs", as_integer},
                            {"best", "best", as_score},
                            {"best_epoch", "epoch", as_integer},
                            {"last", "last", as_score},
                            {"last_loss", "loss", as_loss},
                            {"images_per_second", "images/s", as_rate},
                            {"seconds", "time", as_seconds}};
  print_table(columns, rows);
  fmt::print("\nThe report is {}\n", out);
}

// Writes the page without classes and pictures again and again while a process trains the run. Ctrl-C ends
// it.
void follow(const fs::path& run, const fs::path& out, const Options& options) {
  const Interrupt interrupt;
  const std::string missing = "The run is being trained: classes and pictures come with its end.";
  fmt::print("{} shows the run while it is trained, anew every {} s; Ctrl-C ends this\n", out.string(),
             options.follow);
  std::fflush(stdout);
  while (Interrupt::signal() == 0) {
    const RunRecord record = read_run(run);
    if (state_of(record) != "training") return;
    write_file_atomically(out, run_page(record, nullptr, missing, options.device, options.follow));
    for (int i = 0; i < 10 * options.follow && Interrupt::signal() == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

ExitCode run(const Options& options) {
  std::vector<RunRecord> runs;
  expect_output("report: --out", options.out);
  const std::vector<std::string> names = names_of_runs(options.runs);
  for (size_t i = 0; i < options.runs.size(); ++i) {
    runs.push_back(read_run(options.runs[i]));
    runs.back().name = names[i];
  }
  if (options.follow > 0) {
    check(runs.size() == 1 && !options.json, "report: --follow is of one run, and prints no JSON");
    follow(runs[0].path, options.out.empty() ? runs[0].path / "report.html" : fs::path(options.out), options);
    runs[0] = read_run(options.runs[0]);
  }
  for (const RunRecord& run : runs)
    for (const std::string& sentence : run.changed) fmt::print(stderr, "warning: {}\n", printable(sentence));
  const bool single = runs.size() == 1;
  const fs::path out = !options.out.empty() ? fs::path(options.out)
                       : single             ? runs[0].path / "report.html"
                                            : fs::path("compare.html");
  write_file_atomically(out, single ? single_page(runs[0], options) : compare_page(runs));
  print_summaries(runs, options.json, out.string());
  return ExitCode::done;
}

}  // namespace

void add_report(Command& app) {
  Command& command = add_command(
      app, "report", "A run as a page to look at; several runs side by side.",
      {"tessera report runs/cifar", "tessera report runs/vit runs/sl-vit --out compare.html",
       "tessera report runs/cifar --follow 30"},
      "Of one run: curves, classes, confusion, the worst mistakes, config, into RUN/report.html (train "
      "writes "
      "it at its end). Of several: their figures and curves together and what differs in their configs, into "
      "compare.html. The page is one file that opens from disk.");
  auto options = std::make_shared<Options>();
  command.add_option("run", options->runs, "Run folders")->required()->type_name("RUN...");
  command.add_option("--out", options->out, "The page that is written")->type_name("FILE");
  command
      .add_option("--follow", options->follow,
                  "While the run is trained: the page anew every so many seconds, which browsers load again")
      ->check(non_negative())
      ->type_name("SECONDS");
  command.add_option("--data", options->data, "The data set's folder, if it is not where it was")
      ->type_name("DIR");
  add_device(command, options->device);
  add_threads(command);
  add_json(command, options->json);
  on_run(command, [options] { return run(*options); });
}

}  // namespace tessera
