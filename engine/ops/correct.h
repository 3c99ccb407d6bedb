#pragma once

#include "engine/core/tensor.h"

namespace tessera {

// The number of rows of logits [B, K] whose largest value (the first among equals) is at their label [B];
// -> i64 [1] on the logits' device. Not recorded, since it has no gradient. Fails unless the shapes fit.
Tensor count_correct(const Tensor& logits, const Tensor& labels);

}  // namespace tessera
