#pragma once

#include "engine/core/tensor.h"

namespace tessera {

// How many rows of logits [B, K] have their largest value, the first of equals, at their label [B]; i64 [1],
// where the logits are. Not an op: it has no gradient and is not recorded. Fails unless the shapes fit.
Tensor count_correct(const Tensor& logits, const Tensor& labels);

}  // namespace tessera
