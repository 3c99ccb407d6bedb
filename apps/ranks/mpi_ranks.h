#pragma once

#include <memory>

#include "apps/training/ranks.h"

namespace tessera {

/// The ranks that MPI has started; null where there is one, or this binary was built without MPI. Afterwards
/// a thread tells the others once a second that this rank is alive. Where one has been silent for 20 seconds,
/// every other ends with exit code 2, the first of them with a line that names it. The same befalls a rank
/// that is alive but has asked for no message in ten minutes, or has done nothing in rank_patience(), while
/// others wait.
std::unique_ptr<Ranks> start_mpi();

/// Whether this binary was built with MPI.
bool has_mpi();

}  // namespace tessera
