#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "apps/reporting/run_record.h"
#include "apps/training/checkpoint.h"
#include "apps/training/evaluation.h"
#include "data/dataset.h"

namespace tessera {

// What a report needs besides the run's record: its best weights and its data.
struct ReportSource {
  Checkpoint checkpoint;
  Dataset dataset;
  // The evaluation of these weights on the validation pictures; null: the report evaluates them itself.
  const JudgedPass* judged = nullptr;
};

// Whether the run has saved weights; it has none before its first epoch ends.
bool has_weights(const std::filesystem::path& run);

// The page of one run: figures, curves, config and history; with a source also its classes and its worst
// mistakes with their pictures (a segmenter's masks, a diffusion model's samples). Without a source `missing`
// says why. With `refresh` the browser loads the page again every so many seconds.
std::string run_page(const RunRecord& run, const ReportSource* source, const std::string& missing,
                     Device device, int refresh = 0);

// The page that compares runs of one task: a table of their figures, their curves in common charts, and the
// config keys that differ. Fails for runs of different tasks.
std::string compare_page(std::span<const RunRecord> runs);

// Writes RUN/report.html atomically, from the run's weights and data set, and returns its path. The report of
// a run without weights leaves out what needs them. `judged` is the evaluation of the best epoch's weights on
// the validation pictures, if the caller has it; otherwise the report evaluates them.
std::filesystem::path write_report(const std::filesystem::path& run, const Dataset& dataset, Device device,
                                   const JudgedPass* judged = nullptr);

}  // namespace tessera
