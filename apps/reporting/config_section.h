#pragma once

#include <span>
#include <string>

#include "apps/reporting/run_record.h"

namespace tessera {

// The run's config as HTML: its keys by section, and the whole as JSON to copy.
std::string config_section(const RunRecord& run);

// A table of the config keys whose values differ between the runs, with one column for each run.
std::string config_differences(std::span<const RunRecord> runs);

}  // namespace tessera
