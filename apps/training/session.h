#pragma once

#include "apps/training/trainer.h"

namespace tessera {

/// Calls trainer.run() and notes in the folder's events.jsonl when the session began (`event`: "start" or
/// "resume") and how it ended: "finished", "stopped", or "failed" with the error, which is thrown again.
Ending run_session(Trainer& trainer, RunFolder& folder, const StopAfter& stop, const Computing& computing,
                   const char* event);

}  // namespace tessera
