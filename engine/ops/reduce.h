#pragma once

#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

/// The sum and the mean of x over all axes, -> [] of one element, or over the given axes (negative ones count
/// from the last); with `keep` these remain in the shape with size 1. Fail for an axis that x lacks or that
/// is named twice; mean also for an x without elements.
Tensor sum(const Tensor& x);
Tensor sum(const Tensor& x, const std::vector<int>& axes, bool keep = false);
Tensor mean(const Tensor& x);
Tensor mean(const Tensor& x, const std::vector<int>& axes, bool keep = false);

/// The largest entry along an axis, NaN if there is one. Among equal entries the first gets the gradient.
/// Fails for an axis that x lacks or that has no entry.
Tensor max(const Tensor& x, int axis, bool keep = false);

}  // namespace tessera
