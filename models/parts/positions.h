#pragma once

#include "engine/ops/attention/attention.h"

namespace tessera {

// Carries a position embedding to another grid, [1, prefix + N, D] -> [1, prefix + N', D]: bicubic with
// a = -0.75, half-pixel centres, borders repeated, no antialiasing. The rows of the `prefix` tokens (the
// class token's) stay.
Tensor resize_pos_embed(const Tensor& pos_embed, Grid from, Grid to, int64_t prefix);

}  // namespace tessera
