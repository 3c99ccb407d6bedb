#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/training/growing_file.h"
#include "apps/training/layer_figures.h"
#include "apps/training/log_marks.h"

namespace tessera {

/// The file watch.csv of a run folder: a row for each layer and head of each watched step. It grows by whole
/// lines; a run that is resumed cuts off those of steps that run again.
class WatchFile {
 public:
  static std::filesystem::path path_in(const std::filesystem::path& folder) { return folder / "watch.csv"; }

  /// The first line, without its end.
  static std::string head();

  /// Opens the file, or makes it, and keeps what the mark is of. Says so where it is not what it was, and
  /// keeps the whole lines where it has become shorter. Fails where it cannot be written.
  WatchFile(const std::filesystem::path& folder, const LogMark& saved);

  void add(int64_t step, const std::vector<LayerFigures>& layers);
  /// Makes sure that all rows are on the disk; returns the mark of them all.
  LogMark save() const;

 private:
  GrowingFile file_;
};

}  // namespace tessera
