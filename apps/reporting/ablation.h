#pragma once

// A grid of configs and what came of them: the cells of `tessera ablate`.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/training/task.h"
#include "engine/io/json.h"

namespace tessera {

// One key of the config and the values that it takes.
struct Switch {
  std::string key;           // "model.attention.scale"
  std::string name;          // what tables and folders call it: "scale", or the key where two would be alike
  std::vector<Json> values;  // as --set reads them
};

// From "key=value,value" each; commas inside brackets and quotes do not count. Fails for a text of another
// form, a value or a key that comes twice.
std::vector<Switch> read_switches(const std::vector<std::string>& texts);

// One choice for every switch, in their order.
using Choice = std::vector<Json>;
// All of them, the last switch changing fastest.
std::vector<Choice> choices_of(const std::vector<Switch>& switches);
// "scale=learned mask_diagonal=true"; as a folder's name, with '+' between and no other signs than
// letters, digits and "=._-".
std::string text_of(const std::vector<Switch>& switches, const Choice& choice);
std::string folder_of(const std::vector<Switch>& switches, const Choice& choice);

// What came of one choice with one seed.
struct Outcome {
  std::optional<double> best, last;  // by the task's score: an accuracy, a loss, a mean IoU
  std::string reason;                // why there is none: the config was refused, or the run failed
  bool refused = false;
};

struct Spread {
  int64_t count = 0;
  double mean = 0;
  std::optional<double> deviation;  // of a sample, n - 1; from two numbers on
};
Spread spread_of(const std::vector<double>& numbers);

// The outcomes by choice and seed as rows: the switches by name, runs, best and last with their deviations,
// and a note: a reason, or how many of the seeds are still to run.
Json table_of(const std::vector<Switch>& switches, const std::vector<std::vector<Outcome>>& outcomes,
              int64_t seeds);

// The table as Markdown, scores as "81.20 ± 0.31", and as CSV, numbers as they are.
std::string markdown_of(const std::vector<Switch>& switches, const Json& rows, Task task);
std::string csv_of(const std::vector<Switch>& switches, const Json& rows);
// A row's score and its deviation as people read them; `key` is "best" or "last".
std::string score_text_of(const Json& row, const std::string& key, Task task);

}  // namespace tessera
