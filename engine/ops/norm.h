#pragma once

#include "engine/core/tensor.h"

namespace tessera {

/// Layer norm over the last axis (Ba et al., 2016):
///   y = h * weight + bias,  h = (x - mean) / sqrt(var + eps)
/// with the mean and the (biased) variance of each row. x [..., D]; weight, bias [D]; -> [..., D].
/// Fails unless weight and bias have the size of x's last axis, its type and its device.
///
/// With `images`, i64 [K] in rising order, only those images (entries of axis 0) of x are normed:
/// [B, ..., D] -> [K, ..., D].
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps = 1e-5,
                  const Tensor& images = {});

}  // namespace tessera
