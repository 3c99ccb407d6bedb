#pragma once

#include <cstdint>

#include "engine/io/json.h"

namespace tessera {

// The memory that a model takes, in bytes, in f32.
struct Footprint {
  int64_t weights = 0;      // parameters and buffers
  int64_t activations = 0;  // for each image of a batch, at the peak of a training step
};

// Found by dry runs of a forward and backward pass: no number is computed.
Footprint footprint_of(const Json& config);

}  // namespace tessera
