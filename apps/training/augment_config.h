#pragma once

#include "data/augment/options.h"
#include "engine/io/json.h"

namespace tessera {

// The "augment" object of a config; what is left out is as in `defaults`.
AugmentOptions read_augment(Fields fields, AugmentOptions defaults);
// All of it, which read_augment reads back.
Json to_json(const AugmentOptions& options);

}  // namespace tessera
