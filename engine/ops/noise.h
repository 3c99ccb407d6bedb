#pragma once

#include <cstdint>

#include "engine/core/tensor.h"

namespace tessera {

/// Standard normal numbers that depend on the key alone: not on the thread count, and on the device only in
/// the last digits of a logarithm and a cosine. Not recorded, since it has no inputs.
Tensor normal_noise(const Shape& shape, uint64_t key, DType dtype = DType::f32, Device device = Device::cpu);

}  // namespace tessera
