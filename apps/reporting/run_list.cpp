#include "apps/reporting/run_list.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/reporting/run_keys.h"
#include "apps/reporting/table.h"
#include "apps/training/csv.h"
#include "apps/training/run_folder.h"
#include "engine/core/error.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr int deepest = 4;

// What a run's readers know already from other columns, or what tells nothing about what it was trained with.
constexpr const char* untold[] = {"about", "data.dir"};

// Whether a process trains the run: it holds the lock of events.jsonl.
bool is_training(const fs::path& run) {
  const int events = ::open((run / "events.jsonl").c_str(), O_RDONLY | O_CLOEXEC);
  if (events < 0) return false;
  const bool locked = flock(events, LOCK_SH | LOCK_NB) != 0;
  close(events);
  return locked;
}

std::string started(const RunRecord& run) {
  for (const Json& event : run.events)
    if (const Json time = event.value("time", Json()); time.is_string()) return time.get<std::string>();
  return "";
}

// A search for runs finds their folders, and says why others could not be looked into.
struct Found {
  std::vector<fs::path> runs;
  std::vector<std::string> warnings;

  void leave_out(const fs::path& folder, const std::error_code& error) {
    warnings.push_back(folder.string() + ": cannot be looked into (" + error.message() +
                       "), so runs in it are left out");
  }
};

// Adds the folder where it is a run's, and those below it. Links to folders are looked at, not into. A
// config.json of something else has no "data".
void find_runs(const fs::path& folder, int depth, Found& found) {
  std::error_code error;
  if (fs::is_regular_file(folder / "config.json", error)) found.runs.push_back(folder);
  const bool absent = error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  if (error && !absent) return found.leave_out(folder, error);
  if (depth > deepest || (depth > 0 && fs::is_symlink(folder, error))) return;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    std::error_code not_a_folder;
    if (at->is_directory(not_a_folder)) find_runs(at->path(), depth + 1, found);
  }
  if (error) found.leave_out(folder, error);
}

// The value of a row by which it is sorted; null where it has none. A number of the config counts as one.
Json value_of(const Json& row, const std::string& key) {
  if (row.contains(key)) return row.at(key);
  const Json differs = row.at("differs").value(key, Json());
  if (!differs.is_string()) return differs;
  const Json number = Json::parse(differs.get<std::string>(), nullptr, false);
  return number.is_number() ? number : differs;
}

bool small_first(const Json& row, const std::string& key, const Json& value) {
  const bool score = key == "best" || key == "last";
  return value.is_string() || key == "last_loss" || key == "train_loss" ||
         (score && row.value("score", "") == std::string("validation_loss"));
}

}  // namespace

std::string state_of(const RunRecord& run) {
  if (is_training(run.path)) return "training";
  for (auto event = run.events.rbegin(); event != run.events.rend(); ++event) {
    const Json name = event->value("event", Json());
    for (const char* end : {"finished", "stopped", "failed"})
      if (name == end) return end;
    if (name == "start" || name == "resume") return "broken off";
  }
  return "broken off";
}

RunList list_runs(const fs::path& folder) {
  check(fs::is_directory(folder), folder.string(), ": is not a folder");
  Found found;
  find_runs(folder, 0, found);
  std::ranges::sort(found.runs);
  RunList list;
  list.warnings = found.warnings;
  std::vector<ConfigKeys> configs;
  for (const fs::path& path : found.runs) {
    try {
      const RunRecord run = read_run(path);
      list.warnings.insert(list.warnings.end(), run.changed.begin(), run.changed.end());
      Json row = summary_of(run);
      const fs::path below = path.lexically_relative(folder);
      row["run"] = below == "." ? run.name : below.string();
      row["path"] = path.string();
      row["state"] = state_of(run);
      row["started"] = started(run);
      row["notes"] = notes_of(path);
      list.rows.push_back(row);
      flatten(run.config, "", configs.emplace_back());
    } catch (const std::exception& error) {
      list.warnings.emplace_back(error.what());
    }
  }
  if (configs.empty()) return list;
  list.keys = differing_keys(configs);
  std::erase_if(list.keys,
                [](const std::string& key) { return std::ranges::find(untold, key) != std::end(untold); });
  for (size_t i = 0; i < configs.size(); ++i) {
    Json differs = Json::object();
    for (const std::string& key : list.keys)
      if (const std::string* const value = find(configs[i], key)) differs[key] = *value;
    list.rows[i]["differs"] = differs;
  }
  return list;
}

const std::vector<std::string>& sort_keys() {
  static const std::vector<std::string> keys{
      "run",  "state",     "model",      "dataset",           "epochs",  "best",   "best_epoch",
      "last", "last_loss", "train_loss", "images_per_second", "seconds", "started"};
  return keys;
}

void sort_runs(RunList& list, const std::string& key, bool reversed) {
  const bool known = std::ranges::find(sort_keys(), key) != sort_keys().end() ||
                     std::ranges::find(list.keys, key) != list.keys.end();
  std::vector<std::string> all = sort_keys();
  all.insert(all.end(), list.keys.begin(), list.keys.end());
  check(known || list.rows.empty(), "runs: --sort ", key, ": no such column, and no key of the configs that ",
        "differs", did_you_mean(key, all));
  const auto before = [&](const Json& a, const Json& b) {
    const Json x = value_of(a, key), y = value_of(b, key);
    if (x.is_null() || y.is_null()) return !x.is_null() && y.is_null();
    return (small_first(a, key, x) != reversed) ? x < y : y < x;
  };
  std::stable_sort(list.rows.begin(), list.rows.end(), before);
}

std::string run_csv(const RunList& list) {
  std::vector<std::string> header = sort_keys();
  header.insert(header.end(), list.keys.begin(), list.keys.end());
  header.emplace_back("notes");
  std::string text = csv_line(header);
  const auto field = [](const Json& value) { return value.is_null() ? "" : as_text(value); };
  for (const Json& row : list.rows) {
    std::vector<std::string> fields;
    for (const std::string& key : sort_keys()) fields.push_back(field(row.value(key, Json())));
    for (const std::string& key : list.keys) fields.push_back(field(row.at("differs").value(key, Json())));
    std::string notes;
    for (const Json& note : row.at("notes")) notes += (notes.empty() ? "" : "; ") + note.get<std::string>();
    fields.push_back(notes);
    text += csv_line(fields);
  }
  return text;
}

}  // namespace tessera
