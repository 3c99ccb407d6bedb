#pragma once

#include <string>
#include <vector>

#include "apps/reporting/run_record.h"

namespace tessera {

// What a run's own figures say about it, a sentence each, the most serious first: that it diverged, that it
// learned its training pictures by heart, that it was still getting better, that it waited for its data.
std::vector<std::string> advice_of(const RunRecord& run);

// "12 epochs in 3:20, 0:15 of it evaluation, 5300 images/s": the time of all sessions.
std::string time_line(const RunRecord& run);

}  // namespace tessera
