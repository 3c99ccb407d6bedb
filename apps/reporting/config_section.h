#pragma once

#include <span>
#include <string>

#include "apps/reporting/run_record.h"

namespace tessera {

// The effective config: its keys by section, and the whole as JSON to copy.
std::string config_section(const RunRecord& run);

// The keys that are not the same in all of the runs, with their values, a column a run.
std::string config_differences(std::span<const RunRecord> runs);

}  // namespace tessera
