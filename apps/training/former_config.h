#pragma once

#include "apps/training/config.h"

namespace tessera {

// Gives `config`, read from `document`, the meaning that it had when it was written, if it is the whole
// config of a run from before there was a key "batch_norm": models with batch norms took the whole batch
// whatever micro_batch was, and a micro_batch of 64, the default, was written whether or not anybody had
// given it.
void keep_former_meaning(const Json& document, TrainConfig& config);

}  // namespace tessera
