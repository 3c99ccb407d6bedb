#pragma once

#include <cstdint>

#include "engine/io/json.h"

namespace tessera {

// What a training step with AdamW holds in memory at its peak, in bytes, in f32.
struct StepMemory {
  int64_t weights = 0;      // parameters and buffers
  int64_t gradients = 0;    // of the parameters
  int64_t optimizer = 0;    // its moments
  int64_t activations = 0;  // what forward and backward pass hold besides, the images themselves not counted

  int64_t total() const { return weights + gradients + optimizer + activations; }
};

// Of a step whose `batch` images go through at once (a micro-batch of tessera train). Found by dry runs: no
// number is computed, but what kernels take from the pool while they run is counted.
StepMemory step_memory_of(const Json& config, int64_t batch);

// The memory that a model takes, in bytes, in f32.
struct Footprint {
  int64_t weights = 0;      // parameters and buffers
  int64_t activations = 0;  // for each image of a batch, at the peak of a training step
};

// Found in the same way.
Footprint footprint_of(const Json& config);

}  // namespace tessera
