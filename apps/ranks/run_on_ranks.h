#pragma once

#include <functional>
#include <string>

#include "apps/options/command.h"
#include "apps/training/ranks.h"
#include "apps/training/trainer.h"

namespace tessera {

/// Calls work(ranks), with null where this process was started alone. Else the first rank alone prints, and a
/// rank shares its cores with those of its machine that may run on the same, unless `threads_given`. An error
/// on a rank ends all of them: a line on stderr names rank, host and error, and the exit code is 2. Refuses
/// to work where a launcher has started several processes that MPI does not join.
ExitCode run_on_ranks(bool threads_given, const std::function<ExitCode(Ranks*)>& work);

/// "4 with 1 thread each, on 2 machines", and which of them have nothing to do.
std::string describe_ranks(Ranks& ranks, const Trainer& trainer, int64_t batch);

}  // namespace tessera
