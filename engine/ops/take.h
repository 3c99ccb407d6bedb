#pragma once

#include "engine/core/tensor.h"

namespace tessera {

// Entries of an axis in another order: y[..., i, ...] = x[..., index_i, ...], index i64 [n] on the host. An
// entry may be taken often or never. Windows of tokens, moved or mirrored maps are one take each. Fails for
// an index outside the axis, naming it.
Tensor take(const Tensor& x, int axis, const Tensor& index);

// The entries of an axis from the last to the first.
Tensor flip(const Tensor& x, int axis);

}  // namespace tessera
