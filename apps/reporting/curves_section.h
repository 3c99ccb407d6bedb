#pragma once

#include <span>
#include <string>

#include "apps/reporting/run_record.h"

namespace tessera {

// The curves of a run over its epochs, as cards: loss, what it is judged by, learning rate, throughput,
// gradient norm. Of several runs, laid over one another: a colour a run, its training curves dashed. They
// must have one task.
std::string curves(std::span<const RunRecord> runs);

}  // namespace tessera
