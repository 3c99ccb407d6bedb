#pragma once

// The contents of a run folder for reports: everything but the weights.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "apps/training/precision.h"
#include "apps/training/step_file.h"
#include "apps/training/task.h"
#include "engine/io/json.h"

namespace tessera {

struct RunRecord {
  std::filesystem::path path;
  std::string name;  // of the folder
  Task task = Task::classify;
  Json config;
  std::vector<std::string> columns;       // of metrics.csv
  std::vector<std::vector<double>> rows;  // one for each epoch; NaN where a field is empty
  std::vector<Json> events;               // lines of events.jsonl
  std::vector<StepRow> steps;             // rows of steps.csv
  std::vector<std::string> changed;       // a sentence for each of these files that is not as it was saved

  int64_t epochs() const { return static_cast<int64_t>(rows.size()); }
  // A column of metrics.csv; all NaN if there is no such column. [epochs]
  std::vector<double> column(const std::string& name) const;
  // A number of the epoch events; NaN where an epoch has none. An epoch that ran twice counts by its last
  // event. [epochs]
  std::vector<double> epoch_events(const std::string& key) const;

  std::string model_name() const;  // its preset or architecture
  std::string dataset() const;
};

// Fails for a folder without config.json, and for a metrics.csv that is not a table of numbers, naming file
// and line. A run without a finished epoch has no rows. Truncated and changed lines of events.jsonl are
// skipped.
RunRecord read_run(const std::filesystem::path& folder);

// The column that the run is judged by ("validation_top1" ...), and whether larger is better.
struct ScoreColumn {
  const char* name;
  bool larger_is_better;
};
ScoreColumn score_column(Task task);

// The epoch with the best score, counted from 1; 0 if no epoch was evaluated.
int64_t best_epoch(const RunRecord& run);
// The value of a column at `epoch`, counted from 1; NaN for epoch 0.
double value_at(const RunRecord& run, const std::string& column, int64_t epoch);
// The precision of the run's last session; f32 if its events do not say.
Precision precision_of(const RunRecord& run);
// The keys of the config that --time or --resume has changed on the way, so that a state saved before, or one
// that a kill kept from being saved, has them otherwise.
std::vector<std::string> keys_changed_on_the_way(const RunRecord& run);
// The last epoch that was evaluated; 0 if none was.
int64_t last_evaluated(const RunRecord& run);

// One row for the table of `tessera report`: run, model, dataset, epochs, score (its name), best, best_epoch,
// last, last_loss, train_loss, images_per_second, seconds; null for what is unknown.
Json summary_of(const RunRecord& run);

}  // namespace tessera
