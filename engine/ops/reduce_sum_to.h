#pragma once

#include "engine/autograd/tape.h"

namespace tessera {

// Undoes broadcasting in a backward pass: adds factor * dy to the gradient of input i, of shape `shape`,
// summed over the axes along which that shape was stretched to dy's.
void add_sum_to(Gradients& g, int i, const Tensor& dy, const Shape& shape, double factor = 1);

}  // namespace tessera
