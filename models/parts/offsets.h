#pragma once

#include "engine/ops/attention/attention.h"

namespace tessera {

// For every pair (query i, key j) of `prefix` tokens and then a grid, the row of a table over the
// (2h-1)(2w-1) offsets: (dy + h-1)(2w-1) + dx + w-1. Pairs with a prefix token point one past the table's
// end. i64 [N * N]. `sign` 1 takes key minus query (the prior), -1 query minus key (the relative bias).
Tensor offset_index(Grid grid, int64_t prefix, int sign);

// The offsets themselves, row k being (dx, dy). [(2h-1)(2w-1), 2]
Tensor offsets(Grid grid, DType dtype, Device device);

// The rows of a table over a grid's offsets that a part of it has, one of its rows or columns, say: [(2h-1)
// (2w-1), H] -> [(2h'-1)(2w'-1), H].
Tensor offsets_within(const Tensor& table, Grid grid, Grid part);

// table [T, H], one row an offset -> [H, N, N] by the index; `fill` stands for pairs with a prefix token.
Tensor spread(const Tensor& table, const Tensor& index, int64_t tokens, double fill);

}  // namespace tessera
