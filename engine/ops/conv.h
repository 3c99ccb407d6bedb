#pragma once

#include "engine/core/tensor.h"

namespace tessera {

/// Convolutions over maps with the channels last, as tokens have them: [B, H, W, C]. Weights have the layout
/// of checkpoints, [O, C, kh, kw]. The map is padded with zeros. H' = (H + 2 padding - kh) / stride + 1, and
/// W' likewise.
struct ConvOptions {
  int64_t stride = 1, padding = 0;
};

/// y[b, i, j, o] = bias[o] + sum over u, v, c of weight[o, c, u, v] x[b, i stride + u - padding, j stride + v
/// - padding, c]. x [B, H, W, C]; weight [O, C, kh, kw]; bias [O] or undefined; -> [B, H', W', O].
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options = {});

/// The depthwise convolution: every channel has m filters of its own; output channel o reads channel o / m.
/// weight [C m, 1, kh, kw]; bias [C m] or undefined; -> [B, H', W', C m].
Tensor depthwise_conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvOptions& options = {});

/// The windows that a convolution reads, one in each row: the soft split of T2T-ViT. [B, H, W, C] -> [B, H'
/// W', C k k], each flattened as (c, y, x).
Tensor unfold(const Tensor& x, int64_t kernel, const ConvOptions& options);

}  // namespace tessera
