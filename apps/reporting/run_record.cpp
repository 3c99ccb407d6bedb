#include "apps/reporting/run_record.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>

#include "apps/training/log_marks.h"
#include "apps/training/run_identity.h"
#include "apps/training/time_plan.h"
#include "engine/core/error.h"
#include "engine/core/error_place.h"
#include "engine/io/file.h"
#include "engine/io/safetensors.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line)
    if (c == ',')
      fields.emplace_back();
    else if (c != '\r')
      fields.back() += c;
  return fields;
}

double number_of(const std::string& field, const std::string& where) {
  if (field.empty()) return unknown;
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  check(error == std::errc() && end == field.data() + field.size(), where, ": '", field, "' is not a number");
  return value;
}

void read_metrics(RunRecord& run, const fs::path& path) {
  if (!fs::exists(path)) return;
  std::istringstream text(read_text(path));
  std::string line;
  for (int64_t number = 1; std::getline(text, line); ++number) {
    const std::string where = path.string() + ": line " + std::to_string(number);
    const std::vector<std::string> fields = fields_of(line);
    if (number == 1) {
      run.columns = fields;
      continue;
    }
    check(fields.size() == run.columns.size(), where, " has ", fields.size(), " fields, the first ",
          run.columns.size());
    std::vector<double> row;
    for (const std::string& field : fields) row.push_back(number_of(field, where));
    run.rows.push_back(std::move(row));
  }
}

void read_events(RunRecord& run, const fs::path& path) {
  if (!fs::exists(path)) return;
  std::istringstream text(read_text(path));
  int64_t changed = 0;
  for (std::string line; std::getline(text, line);) {
    Json event = Json::parse(line, nullptr, false);
    if (contradicts_its_crc(line) || (!event.is_object() && line.ends_with('}')))  // a kill leaves no end
      ++changed;
    else if (event.is_object())
      run.events.push_back(std::move(event));
  }
  if (changed > 0)
    run.changed.push_back(fmt::format(
        "{}: {} lines have been changed since they were written; they are left out", path.string(), changed));
}

// What the header of the saved state says of the run's tables. A damaged state is for others to tell.
void note_changed_logs(RunRecord& run) {
  const fs::path state = run.path / "state.safetensors";
  if (!fs::exists(state)) return;
  try {
    for (std::string& text : changed_logs(run.path, read_safetensors_metadata(state)))
      run.changed.push_back(std::move(text));
  } catch (const Error&) {
  }
}

bool is_epoch(const Json& event) { return event.value("event", Json()) == Json("epoch"); }

Json known(double value) { return std::isfinite(value) ? Json(value) : Json(); }

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += std::isfinite(v) ? v : 0;
  return sum;
}

}  // namespace

std::vector<double> RunRecord::column(const std::string& wanted) const {
  std::vector<double> values(rows.size(), unknown);
  for (size_t c = 0; c < columns.size(); ++c)
    if (columns[c] == wanted)
      for (size_t i = 0; i < rows.size(); ++i) values[i] = rows[i][c];
  return values;
}

std::vector<double> RunRecord::epoch_events(const std::string& key) const {
  std::vector<double> values(rows.size(), unknown);
  for (const Json& event : events) {
    if (!is_epoch(event) || !event.contains(key) || !event.at(key).is_number()) continue;
    const Json epoch = event.value("epoch", Json());
    if (!epoch.is_number_integer()) continue;
    const auto number = epoch.get<int64_t>();
    if (number >= 1 && number <= epochs())
      values[static_cast<size_t>(number - 1)] = event.at(key).get<double>();
  }
  return values;
}

std::string RunRecord::model_name() const {
  if (const Json preset = config.value("preset", Json()); preset.is_string() && preset != Json(""))
    return preset.get<std::string>();
  const Json model = config.value("model", Json::object());
  for (const char* key : {"preset", "arch"})
    if (model.is_object() && model.contains(key) && model.at(key).is_string()) return model.at(key);
  return "-";
}

std::string RunRecord::dataset() const {
  const Json data = config.value("data", Json::object());
  const Json given = data.is_object() ? data.value("name", Json()) : Json();
  return given.is_string() ? given.get<std::string>() : "-";
}

RunRecord read_run(const fs::path& folder) {
  const fs::path config = folder / "config.json";
  check(fs::is_regular_file(config), folder.string(), ": is not a run folder: it has no config.json");
  RunRecord run;
  run.path = folder;
  const fs::path absolute = fs::absolute(folder).lexically_normal();
  run.name = (absolute.has_filename() ? absolute : absolute.parent_path()).filename().string();
  run.config = read_json(config);
  check(run.config.is_object() && run.config.contains("model") && run.config.at("model").is_object(),
        config.string(), ": does not describe a run: it has no object \"model\"");
  run.task = with_place(config.string(), [&] { return task_of(run.config.at("model")); });
  read_metrics(run, folder / "metrics.csv");
  read_events(run, folder / "events.jsonl");
  run.steps = read_step_file(folder);
  note_changed_logs(run);
  return run;
}

ScoreColumn score_column(Task task) {
  if (task == Task::diffuse) return {"validation_loss", false};
  return {task == Task::segment ? "validation_mean_iou" : "validation_top1", true};
}

int64_t best_epoch(const RunRecord& run) {
  const auto [name, larger] = score_column(run.task);
  const std::vector<double> scores = run.column(name);
  int64_t best = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!std::isfinite(scores[i])) continue;
    const double before = best > 0 ? scores[static_cast<size_t>(best - 1)] : unknown;
    if (best == 0 || (larger ? scores[i] > before : scores[i] < before)) best = static_cast<int64_t>(i) + 1;
  }
  return best;
}

Precision precision_of(const RunRecord& run) {
  for (auto event = run.events.rbegin(); event != run.events.rend(); ++event)
    for (const Precision precision : {Precision::f32, Precision::tf32, Precision::bf16})
      if (event->value("precision", Json()) == name(precision)) return precision;
  return Precision::f32;
}

std::vector<std::string> keys_changed_on_the_way(const RunRecord& run) {
  std::vector<std::string> keys;
  for (const Json& event : run.events) {
    if (event.value("event", Json()) == Json("fitted"))
      keys.insert(keys.end(), fitted_keys().begin(), fitted_keys().end());
    if (event.value("event", Json()) != Json("changed")) continue;
    for (const Json& assignment : event.value("keys", Json::array()))
      if (assignment.is_string()) keys.push_back(assigned_key(assignment.get<std::string>()));
  }
  return keys;
}

int64_t last_evaluated(const RunRecord& run) {
  const std::vector<double> losses = run.column("validation_loss");
  for (auto i = static_cast<int64_t>(losses.size()); i > 0; --i)
    if (std::isfinite(losses[static_cast<size_t>(i - 1)])) return i;
  return 0;
}

double value_at(const RunRecord& run, const std::string& column, int64_t epoch) {
  const std::vector<double> values = run.column(column);
  return epoch >= 1 && epoch <= std::ssize(values) ? values[static_cast<size_t>(epoch - 1)] : unknown;
}

namespace {

// Images over seconds of the epochs that tell both; NaN where none does.
double mean_rate(const RunRecord& run) {
  const std::vector<double> rates = run.epoch_events("images_per_second"), each = run.epoch_events("seconds");
  double images = 0, seconds = 0;
  for (size_t i = 0; i < rates.size(); ++i)
    if (std::isfinite(rates[i] * each[i])) images += rates[i] * each[i], seconds += each[i];
  return images / seconds;
}

}  // namespace

Json summary_of(const RunRecord& run) {
  const std::string score = score_column(run.task).name;
  const int64_t best = best_epoch(run), last = last_evaluated(run);
  const double seconds = sum_of(run.epoch_events("seconds")) + sum_of(run.epoch_events("evaluation_seconds"));
  return {{"run", run.path.string()},
          {"model", run.model_name()},
          {"dataset", run.dataset()},
          {"epochs", run.epochs()},
          {"score", score},
          {"best", known(value_at(run, score, best))},
          {"best_epoch", best > 0 ? Json(best) : Json()},
          {"last", known(value_at(run, score, last))},
          {"last_loss", known(value_at(run, "validation_loss", last))},
          {"train_loss", known(value_at(run, "train_loss", run.epochs()))},
          {"images_per_second", known(mean_rate(run))},
          {"seconds", seconds > 0 ? Json(seconds) : Json()}};
}

}  // namespace tessera
