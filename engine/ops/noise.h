#pragma once

#include <cstdint>

#include "engine/core/tensor.h"

namespace tessera {

// Standard normal numbers; the same for the same key, whatever the thread count, and on all devices but for
// the last digits of a logarithm and a cosine. No op: nothing flows back.
Tensor normal_noise(const Shape& shape, uint64_t key, DType dtype = DType::f32, Device device = Device::cpu);

}  // namespace tessera
