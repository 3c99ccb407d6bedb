#pragma once

#include <limits>

#include "engine/core/tensor.h"

namespace tessera {

/// x with `value` on the diagonal of each matrix: with -inf before a softmax no token attends to itself
/// (LSA). x [..., N, N] -> the same. Fails unless the last two sizes are equal.
Tensor mask_diagonal(const Tensor& x, double value = -std::numeric_limits<double>::infinity());

}  // namespace tessera
