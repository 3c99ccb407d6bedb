#pragma once

#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

// The sum and the mean of x over all axes, -> [] of one element, or over the given ones, negative counted
// from the back; with `keep` these stay in the shape with a size of 1. Fails for an axis that x has not, or
// named twice.
Tensor sum(const Tensor& x);
Tensor sum(const Tensor& x, const std::vector<int>& axes, bool keep = false);
Tensor mean(const Tensor& x);
Tensor mean(const Tensor& x, const std::vector<int>& axes, bool keep = false);

// The largest entry along an axis, NaN where there is one. Of equal ones the first takes the gradient. Fails
// for an axis that x has not, or without an entry.
Tensor max(const Tensor& x, int axis, bool keep = false);

}  // namespace tessera
