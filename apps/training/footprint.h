#pragma once

#include <cstdint>

#include "engine/io/json.h"
#include "models/model.h"

namespace tessera {

// The peak memory of a training step with AdamW in f32, in bytes.
struct StepMemory {
  int64_t weights = 0;      // parameters and buffers
  int64_t gradients = 0;    // of the parameters
  int64_t optimizer = 0;    // AdamW's two moments
  int64_t activations = 0;  // everything else that the passes hold, without the images themselves

  int64_t total() const { return weights + gradients + optimizer + activations; }
};

// The memory of a step whose `batch` images go through at once (a micro-batch). Found by dry runs, which
// compute no number but count all memory that the passes take from the pool.
StepMemory step_memory_of(const Json& config, int64_t batch);

// Images, and labels or a segmenter's masks, as a step takes them; of no particular numbers, for a dry run.
TensorMap dry_inputs(const Model& model, int64_t batch);

// The memory that a model takes, in bytes, in f32.
struct Footprint {
  int64_t weights = 0;      // parameters and buffers
  int64_t activations = 0;  // for each image of a batch, at the peak of a training step
};

// Found by dry runs too.
Footprint footprint_of(const Json& config);

}  // namespace tessera
