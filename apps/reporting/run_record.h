#pragma once

// What a run folder tells of its run, for reports: everything but the weights.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "apps/training/precision.h"
#include "apps/training/task.h"
#include "engine/io/json.h"

namespace tessera {

struct RunRecord {
  std::filesystem::path path;
  std::string name;  // of the folder
  Task task = Task::classify;
  Json config;
  std::vector<std::string> columns;       // of metrics.csv
  std::vector<std::vector<double>> rows;  // an epoch each; NaN where a field is empty
  std::vector<Json> events;               // lines of events.jsonl

  int64_t epochs() const { return static_cast<int64_t>(rows.size()); }
  // A column of metrics.csv, NaN where there is no such. [epochs]
  std::vector<double> column(const std::string& name) const;
  // A number of the events of the epochs, the last one of an epoch that ran twice; NaN where there is none.
  // [epochs]
  std::vector<double> epoch_events(const std::string& key) const;

  std::string model_name() const;  // its preset or architecture
  std::string dataset() const;
};

// Fails, naming file and line, for a folder without a config.json and for a metrics.csv that is no table of
// numbers; a run without a finished epoch has no rows. Lines of events.jsonl that are cut short are left out.
RunRecord read_run(const std::filesystem::path& folder);

// The column that the run is judged by ("validation_top1" ...), and whether larger is better.
struct ScoreColumn {
  const char* name;
  bool larger_is_better;
};
ScoreColumn score_column(Task task);

// Its best row by the score: the epoch counted from 1, 0 where none was evaluated.
int64_t best_epoch(const RunRecord& run);
// Row `epoch` (from 1) of a column; NaN for epoch 0.
double value_at(const RunRecord& run, const std::string& column, int64_t epoch);
// What its last session computed in; f32 where its events do not say.
Precision precision_of(const RunRecord& run);
// The last epoch that was evaluated, 0 for none.
int64_t last_evaluated(const RunRecord& run);

// The figures of a run, for the tables of `tessera report`: run, model, dataset, epochs, best_epoch, best and
// final score with their loss, seconds, images_per_second; null for what is not known.
Json summary_of(const RunRecord& run);

}  // namespace tessera
