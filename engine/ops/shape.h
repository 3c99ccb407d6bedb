#pragma once

#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

/// x repeated along axes until it has this shape, by NumPy's rules of broadcasting. Fails where they do not
/// allow it.
Tensor broadcast_to(const Tensor& x, const Shape& shape);

/// x with its axes in another order: axis i of the result is axis order[i] of x. Fails unless each axis is
/// named once.
Tensor permute(const Tensor& x, const std::vector<int>& order);

/// x with its last two axes exchanged: [..., N, M] -> [..., M, N].
Tensor transpose(const Tensor& x);

/// permute(slice(x, axis, i, 1) without that axis, order), copied once. Not recorded: it fails where a tape
/// records.
Tensor permuted_entry(const Tensor& x, int axis, int64_t i, const std::vector<int>& order);

/// The tensors one after another along an axis. Fails unless they agree in type and in all other axes.
Tensor concat(const std::vector<Tensor>& tensors, int axis);

/// Entries [first, first + count) of an axis. Fails where x has fewer.
Tensor slice(const Tensor& x, int axis, int64_t first, int64_t count);

/// Rows of a table, an embedding: x [R, ...], index i64 of any shape -> [index's shape, ...], y_i =
/// x[index_i]. Fails for an index outside 0 .. R-1, naming it.
Tensor gather(const Tensor& x, const Tensor& index);

}  // namespace tessera
