#pragma once

#include <span>
#include <string>

#include "apps/reporting/run_record.h"

namespace tessera {

// The curves of a run over its epochs as HTML cards: loss, score, learning rate, throughput, gradient norm,
// time spent waiting for data. Curves of several runs share the charts: each run has a colour, and its
// training curves are dashed. The runs must have the same task.
std::string curves_section(std::span<const RunRecord> runs);

}  // namespace tessera
