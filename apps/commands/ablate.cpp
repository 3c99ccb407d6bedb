// tessera ablate: a run for every choice of a grid and every seed, and a table of their scores.

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "apps/commands/commands.h"
#include "apps/options/ablation_plan.h"
#include "apps/options/redirect.h"
#include "apps/reporting/run_report.h"
#include "apps/reporting/table.h"
#include "apps/training/config_checks.h"
#include "apps/training/interrupt.h"
#include "apps/training/session.h"
#include "data/registry.h"
#include "engine/core/error.h"
#include "engine/core/printable.h"
#include "engine/io/file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

bool is_finished(const fs::path& folder) {
  if (!fs::exists(folder / "config.json")) return false;
  return std::ranges::any_of(read_run(folder).events, [](const Json& event) {
    return event.value("event", Json()) == Json("finished");
  });
}

Outcome outcome_of(const fs::path& folder) {
  const RunRecord run = read_run(folder);
  const auto score = [&](int64_t epoch) {
    const double value = value_at(run, score_column(run.task).name, epoch);
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
  };
  Outcome outcome{.best = score(best_epoch(run)), .last = score(last_evaluated(run)), .reason = ""};
  if (!outcome.last) outcome.reason = "no evaluation is finite";
  return outcome;
}

// Trains a cell or resumes it. Returns nothing if a signal stopped it; fails if the run fails.
std::optional<Outcome> run_cell(const TrainConfig& given, const fs::path& path, Device device) {
  TrainConfig config = given;
  const Task task = task_of(config.model);
  const Dataset dataset = open_data(config.data, task);
  config.data.image_size = dataset.image_shape[1];
  if (config.model.contains("preset")) config.preset = config.model.at("preset").get<std::string>();
  config.model = resolve_model(config.model, dataset);
  const Computing computing{.device = device};
  Trainer trainer(config, dataset, computing);
  const bool goes_on = fs::exists(path / "config.json");
  RunFolder folder = goes_on ? RunFolder::open(path) : RunFolder::create(path, to_json(config));
  if (goes_on) trainer.restore(folder);
  if (run_session(trainer, folder, {}, computing, goes_on ? "resume" : "start") != Ending::finished)
    return std::nullopt;
  write_report(path, dataset, device, trainer.best_pass());
  return outcome_of(path);
}

// Checks the config of a choice without training: its keys, its data, its model. Returns the reason where one
// of them is refused, otherwise nothing.
std::string refusal_of(const Ablation& a, size_t choice) {
  try {
    const TrainConfig config = read_train_config(a.config(choice, 0), "ablate");
    const Dataset dataset = open_data(config.data, task_of(config.model));
    build(resolve_model(config.model, dataset), {.seed = 0});
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

using Outcomes = std::vector<std::vector<Outcome>>;  // by choice and seed

// Says what is doubtful about the choices that run, each sentence once.
void say_doubts(const Ablation& a, const std::vector<size_t>& can_run) {
  std::set<std::string> said;
  for (const size_t choice : can_run)
    for (const std::string& doubt : doubts_about(read_train_config(a.config(choice, 0), "ablate")))
      if (said.insert(doubt).second) fmt::print(stderr, "warning: ablate: {}\n", doubt);
}

// Looks at every choice before the first run, says which the config refuses, and returns the others.
std::vector<size_t> choices_that_can_run(const Ablation& a, Outcomes& outcomes) {
  std::vector<size_t> can_run;
  for (size_t choice = 0; choice < a.choices.size(); ++choice) {
    const std::string reason = is_finished(a.folder(choice, 0)) ? "" : refusal_of(a, choice);
    if (reason.empty()) {
      can_run.push_back(choice);
      continue;
    }
    fmt::print("refused: {}: {}\n", choice_text(a.switches, a.choices[choice]), printable(reason));
    outcomes[choice].assign(outcomes[choice].size(),
                            {.best = {}, .last = {}, .reason = reason, .refused = true});
  }
  return can_run;
}

// Runs the cell unless it is finished; returns false if a signal stopped it.
bool settle(const Ablation& a, size_t choice, int64_t seed, Device device, Outcome& outcome) {
  const fs::path path = a.folder(choice, seed);
  if (is_finished(path)) {
    outcome = outcome_of(path);
    return true;
  }
  try {
    const std::optional<Outcome> result =
        run_cell(read_train_config(a.config(choice, seed), "ablate"), path, device);
    if (result) outcome = *result;
    return result.has_value();
  } catch (const Error& error) {
    outcome.reason = error.what();
    fmt::print("failed: {}\n", outcome.reason);
    return true;
  }
}

// Runs all cells, seed by seed, so that every choice has a score early; returns false if a signal stopped it.
bool run_all(const Ablation& a, Device device, Outcomes& outcomes) {
  const std::vector<size_t> can_run = choices_that_can_run(a, outcomes);
  say_doubts(a, can_run);
  size_t number = 0;
  for (int64_t seed = 0; seed < a.seeds; ++seed)
    for (const size_t choice : can_run) {
      fmt::print("\n[{}/{}] {} seed={}\n", ++number, static_cast<size_t>(a.seeds) * can_run.size(),
                 choice_text(a.switches, a.choices[choice]), a.first_seed + seed);
      std::fflush(stdout);
      if (!settle(a, choice, seed, device, outcomes[choice][static_cast<size_t>(seed)])) return false;
    }
  return true;
}

void print_rows(const Ablation& a, const Json& rows, Task task) {
  std::vector<Column> columns;
  for (const Switch& s : a.switches) columns.push_back({s.name.c_str(), s.name.c_str()});
  const std::string best = "best " + score_name(task), last = "last " + score_name(task);
  columns.insert(columns.end(), {{"runs", "runs", as_integer},
                                 {"best_text", best.c_str()},
                                 {"last_text", last.c_str()},
                                 {"note", "note"}});
  Json shown = rows;
  for (Json& row : shown)
    for (const char* key : {"best", "last"})
      row[std::string(key) + "_text"] = score_with_deviation(row, key, task);
  fmt::print("\n");
  print_table(columns, shown);
  fmt::print("\n{} and table.csv have it too.\n", (a.out / "table.md").string());
}

ExitCode exit_code(const Outcomes& outcomes) {
  bool any_done = false, any_failed = false;
  for (const auto& of_choice : outcomes)
    for (const Outcome& outcome : of_choice) {
      any_done = any_done || outcome.last;
      any_failed = any_failed || (!outcome.reason.empty() && !outcome.refused);
    }
  return any_failed ? ExitCode::check_failed : any_done ? ExitCode::done : ExitCode::bad_usage;
}

ExitCode run(const AblateOptions& options) {
  const Ablation a = ablation_of(options);
  const Task task = task_of(read_train_config(a.base, "ablate").model);
  claim(a);
  Outcomes outcomes(a.choices.size(), std::vector<Outcome>(static_cast<size_t>(a.seeds)));
  bool all = false;
  {
    std::optional<Redirect> aside;  // only JSON goes to stdout
    if (options.json) aside.emplace(STDERR_FILENO);
    all = run_all(a, options.device, outcomes);
  }
  const Json rows = ablation_rows(a.switches, outcomes, a.seeds);
  write_file_atomically(a.out / "table.md", ablation_markdown(a.switches, rows, task));
  write_file_atomically(a.out / "table.csv", ablation_csv(a.switches, rows));
  if (options.json)
    print_json({{"score", score_name(task)}, {"seeds", a.seeds}, {"rows", rows}});
  else
    print_rows(a, rows, task);
  if (all) return exit_code(outcomes);
  fmt::print(stderr, "tessera: stopped; the same command goes on\n");
  return static_cast<ExitCode>(128 + Interrupt::signal());
}

}  // namespace

void add_ablate(Command& app) {
  Command& command = add_command(
      app, "ablate", "A run for every choice of a grid and every seed, and their table.",
      {"tessera ablate --recipe R --data DIR --grid model.preset=vit,t-vit,m-vit,l-vit --seeds 3 --out "
       "table4",
       "tessera ablate --recipe R --data DIR --grid model.preset=vit,l-vit,s-vit,sl-vit --seeds 3 --out "
       "table5",
       "tessera ablate --recipe demo --grid model.attention.scale=fixed,learned"
       " --grid model.attention.mask_diagonal=false,true --out lsa"},
      "Every cell is a run folder of its own. The same command goes on where it was broken off: finished "
      "cells "
      "are kept, one that was under way resumes. A choice that the config refuses is shown with its reason "
      "before the first run, and the others run. "
      "The table has mean and sample deviation over the seeds; table.md and table.csv lie in the folder. The "
      "first two examples are Tables 4 and 5 of \"Vision Transformer for Small-Size Datasets\".");
  auto options = std::make_shared<AblateOptions>();
  add_ablate_options(command, *options);
  on_run(command, [options] { return run(*options); });
}

}  // namespace tessera
