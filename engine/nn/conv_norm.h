#pragma once

#include "engine/nn/batch_norm.h"
#include "engine/nn/conv2d.h"

namespace tessera {

/// f(norm(conv(x))), or f(norm(conv(x)) + residual): a convolution, its batch norm, and the addition of a
/// shortcut. Where nothing is recorded and the statistics stay, all is done in one pass over memory, with the
/// same bits. x [B, H, W, in]; residual [B, H', W', out] or undefined; -> [B, H', W', out]
Tensor conv_norm(const Conv2d& conv, const BatchNorm& norm, const Tensor& x, const Pass& pass, Activation f,
                 const Tensor& residual = {});

}  // namespace tessera
