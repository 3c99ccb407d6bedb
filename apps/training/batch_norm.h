#pragma once

#include "models/model.h"

namespace tessera {

/// The images whose mean and variance a batch norm takes in training: all of the batch, or those of its
/// micro-batch alone, as where each of several GPUs normalises its own part of a batch.
enum class BatchNormStatistics { batch, micro_batch };

/// Whether the model has batch norms, whose statistics are of the images that go through together.
bool has_batch_norm(const Model& model);

}  // namespace tessera
