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

// What a report looks at besides the files of the run's record: its best weights and its data.
struct ReportSource {
  Checkpoint checkpoint;
  Dataset dataset;
  const JudgedPass* judged =
      nullptr;  // what its weights make of the validation pictures; null: yet to be found
};

// Whether the run has weights to read: it has none before its first epoch is over.
bool has_weights(const std::filesystem::path& run);

// The page of one run: figures, curves, and where there is a source, its classes, its worst mistakes with
// their pictures (a segmenter's masks, a diffusion model's samples); its config and what happened when.
// `missing` says why there is no source.
std::string run_page(const RunRecord& run, const ReportSource* source, const std::string& missing,
                     Device device);

// The page that compares runs of one task: a table of their figures, their curves over one another, what
// differs in their configs. Fails for runs of different tasks.
std::string compare_page(std::span<const RunRecord> runs);

// Writes RUN/report.html atomically, from the weights of the run and its data set, and returns its path. A
// run without weights has a report without what needs them. `judged` is what the weights of the best epoch
// make of the validation pictures, where the run has just found that.
std::filesystem::path write_report(const std::filesystem::path& run, const Dataset& dataset, Device device,
                                   const JudgedPass* judged = nullptr);

}  // namespace tessera
