#pragma once

#include "engine/core/tensor.h"

namespace tessera {

// The matrix product y = a b of the last two axes, for every pair of matrices along the leading axes, which
// broadcast as NumPy's do: a [..., M, K], b [..., K, N] -> [..., M, N]. An operand that is `transposed` is
// stored as [..., K, M] or [..., N, K], and read so without a copy. Fails where the sizes do not meet.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);

}  // namespace tessera
