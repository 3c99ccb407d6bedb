#pragma once

#include <string>

#include "apps/reporting/run_record.h"

namespace tessera {

// What a run's layers did over its steps, as HTML cards with a line for each layer or head; empty for a run
// that was not watched (watch.csv).
std::string watch_section(const RunRecord& run);

}  // namespace tessera
