#pragma once

#include "engine/ops/attention/attention.h"

namespace tessera {

// Resizes a position embedding to another grid, [1, prefix + N, D] -> [1, prefix + N', D]: bicubic with a =
// -0.75, half-pixel centres, repeated borders and no antialiasing. The rows of the `prefix` tokens (the class
// token) stay. Fails if the embedding does not have the grid `from`.
Tensor resize_pos_embed(const Tensor& pos_embed, Grid from, Grid to, int64_t prefix);

}  // namespace tessera
