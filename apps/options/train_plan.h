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
#include "apps/training/trainer.h"

namespace tessera {

// With --json stdout has the events of the run, a line each, and what is said to people goes to stderr.
class EventLines {
 public:
  EventLines(RunFolder& folder, bool wanted);
  ~EventLines();
  // Prints an event that the run itself does not note again.
  void print(const Json& event) const;
  EventLines(const EventLines&) = delete;
  EventLines& operator=(const EventLines&) = delete;

 private:
  int descriptor_;
  std::optional<Redirect> redirect_;
};

// Fails where a disk had no room for the events of a session that has ended. A reader that left wanted no
// more.
void check_printed(const RunFolder& folder);

// Fails where two options are about different things that train does in place of a run.
void check_kind_of_run(const TrainOptions& options);

// Takes the batch that --batch auto stands for.
void choose_batch_for(TrainConfig& config, const Dataset& dataset, const TrainOptions& options);

// Measures the speed and makes the run as long as --time allows. Returns what the session has to keep to.
StopAfter fit_to_budget(TrainConfig& config, const Dataset& dataset, const TrainOptions& options,
                        const Stopwatch& since_start);

// What is left of --time for a session.
double left_of_budget(const TrainOptions& options, const Stopwatch& since_start);

// Fails where an option would make another run of the one that --resume goes on with.
void check_resumable(const TrainOptions& options);

// A run's config as --resume changes it.
struct ConfigChange {
  Json config;
  std::vector<std::string> assignments;  // as --set says them; none where the config stays as it is
};

// The options that are about how long and how fast a run goes on, and --set after them. Fails for a key that
// makes another run.
ConfigChange change_of(const TrainOptions& options, const Json& config);

// Fails for a change of a run that has nothing left to train.
void check_left_to_train(const Trainer& trainer, const TrainConfig& config, const RunFolder& folder,
                         const ConfigChange& change);

}  // namespace tessera
