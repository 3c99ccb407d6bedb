#pragma once

#include "engine/core/tensor.h"
#include "engine/ops/activations.h"

namespace tessera {

/// Convolutions over maps with the channels last, as tokens have them: [B, H, W, C]. Weights have the layout
/// of checkpoints, [O, C, kh, kw]. The map is padded with zeros. H' = (H + 2 padding - kh) / stride + 1, and
/// W' likewise.
struct ConvOptions {
  int64_t stride = 1, padding = 0;
};

/// y[b, i, j, o] = bias[o] + sum over u, v, c of weight[o, c, u, v] x[b, i stride + u - padding, j stride + v
/// - padding, c]. x [B, H, W, C]; weight [O, C, kh, kw]; bias [O] or undefined; -> [B, H', W', O].
///
/// On a CPU, 3 x 3 windows with stride 1 and a multiple of 16 channels on both sides are computed in f32 and
/// f64 by minimal filtering (conv_winograd.h), in less than half the products; a NaN in x then reaches all
/// four outputs of a square of 2 x 2. So are those of multiples of 32 channels in bf16, by AVX-512-BF16: y
/// and dx are then some 0.4 % of their size off (root mean squares), where rounding alone makes 0.17 %.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options = {});

/// The parameters and statistics of a batch norm in evaluation, batch_norm() of engine/ops/batch_norm.h. [O]
/// each
struct FixedNorm {
  Tensor weight, bias, running_mean, running_var;
  double eps = 1e-5;
};

/// f(batch_norm(conv2d(x, weight, bias)) + residual), or without the residual where that is undefined, with
/// the bits of those ops one after the other: on a CPU in the convolution's pass over memory. residual [B,
/// H', W', O]. No tape may record, and no Observer is told.
Tensor normed_conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options,
                     const FixedNorm& norm, Activation f, const Tensor& residual = {});

/// The depthwise convolution: every channel has m filters of its own; output channel o reads channel o / m.
/// weight [C m, 1, kh, kw]; bias [C m] or undefined; -> [B, H', W', C m].
Tensor depthwise_conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvOptions& options = {});

/// normed_conv2d() of a depthwise convolution.
Tensor normed_depthwise_conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                               const ConvOptions& options, const FixedNorm& norm, Activation f,
                               const Tensor& residual = {});

/// The windows that a convolution reads, one in each row: the soft split of T2T-ViT. [B, H, W, C] -> [B, H'
/// W', C k k], each flattened as (c, y, x).
Tensor unfold(const Tensor& x, int64_t kernel, const ConvOptions& options);

}  // namespace tessera
