#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/training/growing_file.h"

namespace tessera {

/// A row of steps.csv. What was not finite, as in a step that was left out, is NaN.
struct StepRow {
  int64_t step;          ///< counted from 1 over the whole run
  double epoch;          ///< how many epochs, whole and part, are over after it
  double loss;           ///< of its batch
  double lr;             ///< that it was taken with
  double gradient_norm;  ///< of all parameters together, before clipping
};

/// The file steps.csv of a run folder: about a thousand rows over the run, of steps at equal distances. It
/// grows by whole lines, and which rows there are depends on the steps' numbers alone, so that a run that is
/// resumed ends with the same bytes.
class StepFile {
 public:
  static std::filesystem::path path_in(const std::filesystem::path& folder) { return folder / "steps.csv"; }

  /// What the file holds; empty where there is none.
  static std::string text_in(const std::filesystem::path& folder);
  /// Makes the file hold these rows of a saved state again, and no later ones; says so where it had others.
  static void restore(const std::filesystem::path& folder, const std::string& rows);

  /// Opens the file, or makes it, and cuts off the rows of steps after `done`, which run again. Says on
  /// stderr where a line is no row, and cuts off from there: the run does not depend on the file. Fails where
  /// it cannot be read or written.
  StepFile(const std::filesystem::path& folder, int64_t done);

  /// Whether a run of `total` steps has a row for this one: for the first, and for each whose number the
  /// distance divides.
  static bool has_row(int64_t step, int64_t total);
  void add(const StepRow& row) const;
  void save() const { file_.save(); }  ///< makes sure that all rows are on the disk

 private:
  GrowingFile file_;
};

/// The rows of steps.csv in `run`, a run folder; none where there is no such file. A line that is not ended
/// is left out, since the run may be writing it. Fails, naming file and line, for another table.
std::vector<StepRow> read_step_file(const std::filesystem::path& run);

}  // namespace tessera
