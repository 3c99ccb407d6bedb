#pragma once

#include "apps/training/trainer.h"

namespace tessera {

// Trains until the run is done or broken off; the run's events tell when it began (`event`: "start" or
// "resume"), and how it ended: finished, stopped, or failed, whose error is thrown on.
Ending run_session(Trainer& trainer, RunFolder& folder, const StopAfter& stop, const Computing& computing,
                   const char* event);

}  // namespace tessera
