#pragma once

// The file watch.csv of a run folder, for reports.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "apps/training/layer_figures.h"

namespace tessera {

struct WatchRow {
  int64_t step;  // counted from 1
  LayerFigures figures;
};

// The rows of watch.csv in `run`, a run folder; none where there is no such file. A last line that is not
// ended is left out, since the run may be writing it. Fails, naming file and line, for another table.
std::vector<WatchRow> read_watch_file(const std::filesystem::path& run);

}  // namespace tessera
