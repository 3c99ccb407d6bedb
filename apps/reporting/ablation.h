#pragma once

// The grid of `tessera ablate`: its choices, the scores of its runs, and the table that is made of them.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/training/task.h"
#include "engine/io/json.h"

namespace tessera {

// One key of the config and the values that the grid gives it.
struct Switch {
  std::string key;  // "model.attention.scale"
  std::string
      name;  // in tables and folders: the last part of the key, or the whole key where two would be alike
  std::vector<Json> values;  // as --set reads them
};

// Reads a switch from each text "key=value,value". Commas inside brackets and quotes do not separate values.
// Fails for a text of another form, and for a value or a key that is given twice.
std::vector<Switch> read_switches(const std::vector<std::string>& texts);

// One value for every switch, in the order of the switches.
using Choice = std::vector<Json>;
// All combinations; the last switch changes fastest.
std::vector<Choice> choices_of(const std::vector<Switch>& switches);
// A choice for people, "scale=learned mask_diagonal=true", and as the name of a folder: with '+' between the
// switches, and '_' for everything but letters, digits and "=._-+".
std::string choice_text(const std::vector<Switch>& switches, const Choice& choice);
std::string choice_folder(const std::vector<Switch>& switches, const Choice& choice);

// The result of one choice with one seed.
struct Outcome {
  std::optional<double> best, last;  // in the task's score: accuracy, loss or mean IoU
  std::string reason;                // why there is no score: the config was refused, or the run failed
  bool refused = false;
};

// Mean and sample deviation of some numbers.
struct Spread {
  int64_t count = 0;
  double mean = 0;
  std::optional<double> deviation;  // divides by n - 1; absent for fewer than two numbers
};
Spread spread_of(const std::vector<double>& numbers);

// One row for each choice: its switches by name, "runs", "best" and "last" with their deviations, and a
// "note": the reason of a refusal or failure, or how many seeds are still to run. outcomes [choice][seed]
Json ablation_rows(const std::vector<Switch>& switches, const std::vector<std::vector<Outcome>>& outcomes,
                   int64_t seeds);

// The table as Markdown, with scores such as "81.20 ± 0.31", and as CSV, with full numbers.
std::string ablation_markdown(const std::vector<Switch>& switches, const Json& rows, Task task);
std::string ablation_csv(const std::vector<Switch>& switches, const Json& rows);
// A row's score with its deviation, for people: "81.20 ± 0.31". `key` is "best" or "last".
std::string score_with_deviation(const Json& row, const std::string& key, Task task);

}  // namespace tessera
