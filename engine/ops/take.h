#pragma once

#include "engine/core/tensor.h"

namespace tessera {

/// Entries of an axis chosen by index: y[..., i, ...] = x[..., index_i, ...], index i64 [n] on the host. An
/// entry may be taken several times or never. Windows of tokens and rolled or mirrored maps are one take
/// each. Fails for an index outside the axis, naming it.
Tensor take(const Tensor& x, int axis, const Tensor& index);

/// x with the entries of an axis in reverse order.
Tensor flip(const Tensor& x, int axis);

}  // namespace tessera
