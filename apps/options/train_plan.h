#pragma once

// What `tessera train` makes of its options before a run begins: batch, length, changes of a run that goes
// on.

#include <optional>
#include <string>
#include <vector>

#include "apps/options/redirect.h"
#include "apps/options/train_options.h"
#include "apps/reporting/measuring.h"
#include "apps/training/run_folder.h"

namespace tessera {

// With --json stdout has the events of the run, a line each, and what is said to people goes to stderr.
class EventLines {
 public:
  EventLines(RunFolder& folder, bool wanted);
  ~EventLines();
  EventLines(const EventLines&) = delete;
  EventLines& operator=(const EventLines&) = delete;

 private:
  int descriptor_;
  std::optional<Redirect> redirect_;
};

// Fails where two options are about different things that train does in place of a run.
void check_kind_of_run(const TrainOptions& options);

// Takes the batch that --batch auto stands for.
void choose_batch_for(TrainConfig& config, const Dataset& dataset, const TrainOptions& options);

// Measures the speed and makes the run as long as --time allows. Returns what the session has to keep to.
StopAfter fit_to_budget(TrainConfig& config, const Dataset& dataset, const TrainOptions& options,
                        const Stopwatch& since_start);

// What is left of --time for a session.
double left_of_budget(const TrainOptions& options, const Stopwatch& since_start);

// What --resume changes, as --set says it: the options that are about how long and how fast a run goes on
// too.
std::vector<std::string> changes_of(const TrainOptions& options, const Json& document);

}  // namespace tessera
