#pragma once

#include "engine/ops/attention/attention.h"

namespace tessera {

// The row of a table over a grid's (2h-1)(2w-1) offsets for every pair (query i, key j) of tokens: (dy +
// h-1)(2w-1) + dx + w-1. A pair with one of the `prefix` tokens before the grid gets the row one past the
// end. `sign` 1 takes key minus query (the prior), -1 query minus key (the relative bias). i64 [N * N]
Tensor offset_index(Grid grid, int64_t prefix, int sign);

// The offsets (dx, dy) in the order of the table's rows. [(2h-1)(2w-1), 2]
Tensor offsets(Grid grid, DType dtype, Device device);

// The rows of a table over a grid's offsets that occur within a part of the grid, such as one of its lines.
// [(2h-1)(2w-1), H] -> [(2h'-1)(2w'-1), H]
Tensor offsets_within(const Tensor& table, Grid grid, Grid part);

// Gathers a table [T, H] of one row per offset into a matrix of pairs by offset_index; pairs with a prefix
// token get `fill`. [H, N, N]
Tensor spread(const Tensor& table, const Tensor& index, int64_t tokens, double fill);

}  // namespace tessera
