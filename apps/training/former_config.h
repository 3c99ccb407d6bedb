#pragma once

#include "apps/training/config.h"

namespace tessera {

// Whether the document is the whole config of a run from before there was a key "batch_norm".
bool written_before_batch_norm(const Json& document);

// Gives the config of such a run the meaning that it had then: models with batch norms took the whole batch
// whatever micro_batch was, and a micro_batch of 64, the default, was written whether or not anybody had
// given it.
void keep_former_meaning(TrainConfig& config);

}  // namespace tessera
