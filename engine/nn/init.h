#pragma once

#include <functional>

#include "engine/core/random.h"
#include "engine/core/tensor.h"

namespace tessera {

// Sets a fresh parameter's numbers from a stream of draws of its own.
using Init = std::function<void(const Tensor& parameter, Random& random)>;

Init constant(double value);
Init normal(double deviation);  // N(0, deviation^2)
Init truncated_normal(
    double deviation);       // the same, redrawn outside [-2, 2] as PyTorch's trunc_normal_ has it
Init uniform(double bound);  // in [-bound, bound)
// Glorot and Bengio (2010): N(0, 2 / (fan_in + fan_out)). The fans are those of the parameter read as a
// linear map [out, in], whatever its further axes: out is axis 0, in all the others.
Init xavier_normal();

}  // namespace tessera
