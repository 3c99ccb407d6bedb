// tessera runs: the runs of a folder, with what differs in their configs and what came of them.

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/options.h"
#include "apps/reporting/run_list.h"
#include "apps/reporting/table.h"
#include "apps/training/run_folder.h"
#include "engine/core/printable.h"

namespace tessera {

namespace {

struct Options {
  std::string folder = "runs", sort = "best", note;
  bool reversed = false, json = false, csv = false;
};

// "0.8910" of a score from 0 to 1 as 89.1 %; the loss of a diffusion model stays.
std::string score_text_of(const Json& row, const char* key) {
  if (row.at(key).is_null()) return "-";
  return row.at("score") == "validation_loss" ? as_loss(row.at(key)) : as_percent(row.at(key));
}

std::string differences_of(const Json& row) {
  std::string text;
  for (const auto& [key, value] : row.at("differs").items())
    text += (text.empty() ? "" : " ") + key + "=" + value.get<std::string>();
  return text;
}

constexpr Column columns[] = {{"run", "run"},
                              {"state", "state"},
                              {"model", "model"},
                              {"dataset", "data"},
                              {"epochs", "epochs", as_integer},
                              {"best_text", "best"},
                              {"best_epoch", "epoch", as_integer},
                              {"last_text", "last"},
                              {"last_loss", "loss", as_loss},
                              {"seconds", "time", as_seconds},
                              {"started", "started"}};

void print(const RunList& list) {
  Json rows = list.rows;
  for (Json& row : rows) {
    row["run"] = printable(row["run"].get<std::string>(), false);
    row["best_text"] = score_text_of(row, "best");
    row["last_text"] = score_text_of(row, "last");
  }
  print_table(columns, rows);
  if (!list.keys.empty() && list.rows.size() > 1) fmt::print("\nWhat differs in their configs:\n");
  for (const Json& row : rows)
    if (list.rows.size() > 1 && !row.at("differs").empty())
      fmt::print("  {}: {}\n", row["run"].get<std::string>(), printable(differences_of(row)));
  for (const Json& row : rows)
    for (const Json& note : row.at("notes"))
      fmt::print("\nnote of {}: {}", row["run"].get<std::string>(), printable(note.get<std::string>()));
  fmt::print("\n{} run{}\n", list.rows.size(), list.rows.size() == 1 ? "" : "s");
}

ExitCode run(const Options& options) {
  if (!options.note.empty()) {
    add_note(options.folder, options.note);
    return ExitCode::done;
  }
  RunList list = list_runs(options.folder);
  sort_runs(list, options.sort, options.reversed);
  for (const std::string& why : list.warnings) fmt::print(stderr, "warning: {}\n", printable(why));
  if (options.csv) return fmt::print("{}", run_csv(list)), ExitCode::done;
  if (options.json) return print_json(list.rows), ExitCode::done;
  if (list.rows.empty())
    fmt::print("{} holds no runs; tessera train makes them\n", options.folder);
  else
    print(list);
  return ExitCode::done;
}

}  // namespace

void add_runs(Command& app) {
  Command& command = add_command(
      app, "runs", "List the runs of a folder: what differs in their configs, and what came of them.",
      {"tessera runs", "tessera runs runs --sort optimizer.lr", "tessera runs runs --csv > runs.csv",
       "tessera runs runs/cifar --note 'labels of class 3 were wrong'"},
      "The best run comes first. Columns are the results and, below, every key of the configs whose values "
      "are\n"
      "not the same in all of them; --sort takes both. tessera report RUN RUN draws their curves together.");
  const auto options = std::make_shared<Options>();
  command.add_option("folder", options->folder, "A folder of run folders, or one run")
      ->capture_default_str()
      ->type_name("DIR");
  command
      .add_option("--sort", options->sort,
                  "By a column (run, state, model, dataset, epochs, best, best_epoch, last, last_loss, "
                  "train_loss, images_per_second, seconds, started) or a key of the configs")
      ->capture_default_str()
      ->type_name("KEY");
  command.add_flag("--reverse", options->reversed, "The other way round");
  Option* note =
      command.add_option("--note", options->note, "Add a line to notes.txt of the run DIR, and list nothing");
  note->type_name("TEXT");
  Option* csv =
      command.add_flag("--csv", options->csv, "Print CSV, with a column for every key that differs");
  add_json(command, options->json);
  csv->excludes(command.get_option("--json"));
  for (const char* of_list : {"--sort", "--reverse", "--csv", "--json"})
    note->excludes(command.get_option(of_list));
  on_run(command, [options] { return run(*options); });
}

}  // namespace tessera
