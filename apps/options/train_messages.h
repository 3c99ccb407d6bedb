#pragma once

// The lines that `tessera train` prints before the first step of a session and after its last one.

#include <filesystem>
#include <string>

#include "apps/options/train_options.h"
#include "apps/training/run_folder.h"
#include "data/dataset.h"

namespace tessera {

// Names the model, the data, the run folder and what computes them; `ranks` describes the processes that
// train together, empty for one alone.
void introduce(const Trainer& trainer, const TrainConfig& config, const Dataset& dataset,
               const RunFolder& folder, const Computing& computing, const std::string& ranks);

// The result, the time, what the figures say of the run, and the commands to go on with; --quiet leaves the
// result alone.
void say_finished(const Trainer& trainer, const TrainConfig& config, const RunFolder& folder,
                  const TrainOptions& options);

void say_broken_off(const Trainer& trainer, const RunFolder& folder);

// Says of a run that --resume found finished how it has ended.
void say_finished_before(const Trainer& trainer, const TrainConfig& config, const RunFolder& folder);

void say_report(const std::filesystem::path& page);

}  // namespace tessera
