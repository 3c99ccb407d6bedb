#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/training/growing_file.h"
#include "apps/training/layer_figures.h"

namespace tessera {

/// The file watch.csv of a run folder: a row for each layer and head of each watched step. It grows by whole
/// lines; a run that is resumed cuts off those of steps that run again.
class WatchFile {
 public:
  static std::filesystem::path path_in(const std::filesystem::path& folder) { return folder / "watch.csv"; }

  /// The first line, without its end.
  static std::string head();

  /// Opens the file, or makes it, and keeps its first `bytes`. Says so, and keeps the whole lines, where
  /// there are fewer. Fails where it cannot be written.
  WatchFile(const std::filesystem::path& folder, int64_t bytes);

  void add(int64_t step, const std::vector<LayerFigures>& layers);
  /// Makes sure that all rows are on the disk; returns the file's size in bytes.
  int64_t save() const;

 private:
  GrowingFile file_;
};

}  // namespace tessera
