#pragma once

#include "engine/core/tensor.h"

namespace tessera {

/// The matrix product y = a b over the last two axes, for every pair of matrices along the leading axes,
/// which broadcast by NumPy's rules: a [..., M, K], b [..., K, N] -> [..., M, N]. With transpose_a, a is
/// stored as
/// [..., K, M], with transpose_b, b as [..., N, K]; they are read in place. Fails where the sizes do not
/// match.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);

}  // namespace tessera
