#pragma once

// What the bf16 kernels of x86-64 processors share.

#include "engine/cpu/bf16_gemm.h"

namespace tessera {

// left_of_transposed() of Bf16Kernels with the pairs of a row side by side, as AMX loads them; by
// AVX-512-BF16. The rows are whole vectors of pairs, with zeros beyond the depth.
LeftPairs left_rows_of_transposed(int64_t depth, int64_t m, const bf16* from, int64_t stride, bf16* to);

}  // namespace tessera
