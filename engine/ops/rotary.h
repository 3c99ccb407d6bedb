#pragma once

#include "engine/core/tensor.h"

namespace tessera {

// Rotary positions (Su et al., 2021): neighbouring channels (2k, 2k+1) of each head, as a point of the plane,
// are turned by an angle of their token and k. x [..., N, H d]; turns [N, d / 2, 2], the angles' cosines and
// sines, in x's wide type beside it; -> the same shape. Fails unless every head's d channels are whole pairs
// and there are N rows of turns.
Tensor rotary(const Tensor& x, const Tensor& turns);

// cos and sin of each angle, for x of type `dtype` on a device: [N, d / 2] -> [N, d / 2, 2]. They do not
// change, so a module keeps them.
Tensor turns_of(const Tensor& angles, DType dtype, Device device = Device::cpu);

// RMT's angles for the tokens of an (h, w) grid in raster order: position p turns pair k by p * theta_k,
// theta_k = 10000^(-k / (d/2 - 1)). f64 [h w, d / 2]
Tensor raster_angles(int64_t tokens, int64_t head_dim);

}  // namespace tessera
