// tessera doctor: what is wrong with a run folder or a data folder, and what to do.

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/options.h"
#include "apps/reporting/run_check.h"
#include "apps/reporting/table.h"
#include "apps/training/progress.h"
#include "data/check.h"
#include "data/registry.h"
#include "data/sets/latents.h"
#include "engine/core/error.h"
#include "engine/core/printable.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

struct Options {
  std::string folder, dataset;
  bool json = false;
};

// The data set whose files are all in the folder; otherwise "latents", or "folder", pictures in class
// folders.
std::string recognised(const fs::path& dir) {
  for (const DatasetEntry& entry : datasets()) {
    if (!entry.published || entry.published->markers.empty()) continue;
    const auto holds = [&](const fs::path& root) {
      return std::ranges::all_of(entry.published->markers,
                                 [&](const auto& name) { return fs::exists(root / name); });
    };
    // The two MNISTs have the same names; the checksums tell which it is.
    if ((holds(dir) || holds(dir / entry.published->folder)) &&
        (entry.published->sums.empty() || check_sums(dir, entry).empty()))
      return entry.name;
  }
  return looks_like_latents(dir) ? "latents" : "folder";
}

// What to do about a finding of its kind.
std::string advice_for(const std::string& kind) {
  if (kind == "layout")
    return "Bring the folder into the form that the message names; tessera data fetch gets published sets";
  if (kind == "unreadable") return "Replace these pictures, or remove them from the folder";
  if (kind == "checksum")
    return "The file was damaged or is another version: remove it and run tessera data fetch again";
  if (kind == "leakage")
    return "Remove these pictures from one of the splits: the validation measures memory";
  if (kind == "duplicates") return "Nothing must be done; each copy counts as a picture of its own";
  if (kind == "contradicting labels") return "Look at these pictures, and keep each in one class";
  if (kind == "wrong size") return "Give --image-size, or replace these pictures";
  if (kind == "empty class") return "Put pictures into the class, or remove its folder";
  return "Compare the folder with a fresh download";
}

std::vector<Diagnosis> check_data(const fs::path& dir, const std::string& name) {
  const DatasetEntry& entry = find_dataset(name);
  Progress progress;
  std::vector<Diagnosis> found;
  try {
    const Dataset data = open_dataset(name, dir);
    DatasetCheck result = check_dataset(data, &entry, [&](double share) {
      progress.show(fmt::format("{} {:3.0f} %", bar(share, 30), 100 * share));
    });
    if (entry.published) std::ranges::move(check_sums(dir, entry), std::back_inserter(result.findings));
    found.push_back({"data", "ok",
                     fmt::format("{} training and {} validation pictures of {} classes", result.images[0],
                                 result.images[1], data.class_names.size()),
                     ""});
    for (const Finding& finding : result.findings) {
      const std::string first = finding.examples.empty() ? "" : ", first " + finding.examples.front();
      found.push_back({finding.kind, finding.wrong ? "WRONG" : "note", finding.message + first,
                       advice_for(finding.kind)});
    }
  } catch (const Error& error) {
    found.push_back({"layout", "WRONG", error.what(), advice_for("layout")});
  }
  progress.clear();
  return found;
}

void print_for_people(const std::string& title, const std::vector<Diagnosis>& found) {
  fmt::print("{}\n\n", printable(title, false));
  for (const Diagnosis& d : found) {
    fmt::print("  {:<5}  {}: {}\n", d.verdict, printable(d.subject, false), printable(d.message));
    if (!d.advice.empty()) fmt::print("         {}\n", printable(d.advice));
  }
  const auto wrong = std::ranges::count_if(found, &Diagnosis::wrong);
  fmt::print("\n{}\n", wrong == 0   ? "Nothing is wrong."
                       : wrong == 1 ? "One thing is wrong."
                                    : fmt::format("{} things are wrong.", wrong));
}

ExitCode run(const Options& options) {
  const fs::path folder = options.folder;
  check(fs::is_directory(folder), "doctor: ", options.folder, ": is no folder; give a run's or a data set's");
  const bool is_run = options.dataset.empty() && looks_like_a_run(folder);
  const std::string name = is_run ? "" : options.dataset.empty() ? recognised(folder) : options.dataset;
  const std::vector<Diagnosis> found = is_run ? check_run(folder) : check_data(folder, name);
  const bool wrong = std::ranges::any_of(found, &Diagnosis::wrong);
  if (options.json) {
    Json list = Json::array();
    for (const Diagnosis& d : found) list.push_back(to_json(d));
    print_json({{"folder", options.folder},
                {"kind", is_run ? "run" : "data"},
                {"dataset", name},
                {"passed", !wrong},
                {"findings", list}});
  } else {
    print_for_people(options.folder + (is_run ? " is a run" : " is taken for the data set " + name), found);
  }
  return wrong ? ExitCode::check_failed : ExitCode::done;
}

}  // namespace

void add_doctor(Command& app) {
  Command& command = add_command(
      app, "doctor", "Look through a run folder or a data folder: what is wrong, and what to do.",
      {"tessera doctor runs/cifar", "tessera doctor tiny-imagenet-200", "tessera doctor photos --json"},
      "Reads every file as training, evaluation and reports would, and changes none. Of a run: config, "
      "states, weights, "
      "metrics, events, the lock, and the space on the disk. A data folder is checked as tessera data check "
      "does. Exit "
      "code 1 where something is wrong.");
  const auto options = std::make_shared<Options>();
  command.add_option("folder", options->folder, "A run's folder or a data set's")
      ->required()
      ->type_name("RUN|DIR");
  command
      .add_option("--dataset", options->dataset,
                  "Take the folder for this data set; otherwise its files tell")
      ->type_name("NAME");
  add_threads(command);
  add_json(command, options->json);
  on_run(command, [options] { return run(*options); });
}

}  // namespace tessera
