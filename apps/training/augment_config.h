#pragma once

#include "data/augment/options.h"
#include "engine/io/json.h"

namespace tessera {

// Reads the "augment" object of a config; keys that are left out have the values of `defaults`.
AugmentOptions read_augment(Fields fields, AugmentOptions defaults);
// The whole object, which read_augment reads back.
Json to_json(const AugmentOptions& options);

}  // namespace tessera
