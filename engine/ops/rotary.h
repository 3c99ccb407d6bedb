#pragma once

#include "engine/core/tensor.h"

namespace tessera {

/// Rotary position embedding (Su et al., 2021): each pair of channels (2k, 2k + 1) of a head is a point of
/// the plane and is rotated by an angle that depends on its token and k. x [..., N, H d]; turns [N, d / 2,
/// 2], the cosine and sine of each angle, on x's device and in its wide type (f32 for bf16); -> x's shape.
/// Fails unless there are N rows of turns and d is even.
Tensor rotary(const Tensor& x, const Tensor& turns);

/// The cosine and sine of each angle, for an x of type `dtype` on a device: [N, d / 2] -> [N, d / 2, 2]. They
/// are constants, so a module computes them once.
Tensor turns_of(const Tensor& angles, DType dtype, Device device = Device::cpu);

/// RMT's angles for the tokens of an (h, w) grid in raster order: position p turns pair k by p * theta_k,
/// theta_k = 10000^(-k / (d/2 - 1)). f64 [h w, d / 2]
Tensor raster_angles(int64_t tokens, int64_t head_dim);

}  // namespace tessera
