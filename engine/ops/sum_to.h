#pragma once

#include "engine/autograd/tape.h"

namespace tessera {

// Undoes broadcasting in a backward pass: adds factor * dy, summed over the axes along which `shape` was
// stretched to dy's shape, to the gradient of input i, which has this shape.
void add_sum_to(Gradients& g, int i, const Tensor& dy, const Shape& shape, double factor = 1);

}  // namespace tessera
