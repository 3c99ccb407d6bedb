#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/nn/batch_norm.h"
#include "engine/nn/conv2d.h"
#include "engine/nn/linear.h"
#include "models/architectures.h"

namespace tessera {

/// EfficientNet (Tan and Le, 2019): inverted residuals with squeeze and excitation.
///
///   x = silu(BN(conv 3x3(image)));  x = blocks(x)
///   x = silu(BN(conv 1x1(x)))                            if head_width > 0
///   logits = classifier(dropout(mean over the pixels of x))
///
/// A block of C channels, expansion e, kernel k and stride s:
///
///   y = silu(BN(conv 1x1(x)))        C -> e C, if e > 1
///   y = silu(BN(depthwise k x k(y)))
///   y = y * sigmoid(W2 silu(W1 mean(y)))                 e C -> max(1, C/4) -> e C
///   y = BN(conv 1x1(y));  y = x + y, if the stride is 1 and the width stays
struct EfficientNet {
  EfficientNet(const Json& config, const Scope& scope);

  Tensor operator()(const Tensor& image, Pass& pass) const;  ///< [B, C, H, W] -> [B, K]

  struct SqueezeExcite {
    SqueezeExcite() = default;
    SqueezeExcite(const Scope& scope, int64_t channels, int64_t squeezed);
    Tensor operator()(const Tensor& x) const;  ///< [B, H, W, C] -> the same

    Conv2d conv_reduce, conv_expand;
    std::string path;
  };

  /// One stage of the config: `depth` blocks; the first has the stride, the others stride 1.
  struct Stage {
    int64_t width, depth, kernel, stride, expand;
  };

  struct Block {
    /// The parameters have timm's names. With an expansion: conv_pw, bn1, conv_dw, bn2, conv_pwl, bn3;
    /// without: conv_dw, bn1, conv_pw, bn2.
    Block(const Scope& scope, int64_t in, int64_t out, int64_t stride, const Stage& stage, double drop_rate);
    Tensor operator()(const Tensor& x, Pass& pass) const;  ///< [B, H, W, in] -> [B, H/s, W/s, out]

    std::optional<Conv2d> expansion;
    BatchNorm expansion_norm;
    Conv2d depthwise;
    BatchNorm depthwise_norm;
    SqueezeExcite se;
    Conv2d projection;
    BatchNorm projection_norm;
    bool residual;
    double drop_path;
    std::string path;

   private:
    Tensor forward(const Tensor& x, Pass& pass) const;
  };

  Conv2d conv_stem;
  BatchNorm bn1;
  std::vector<Block> blocks;
  std::optional<Conv2d> conv_head;
  BatchNorm bn2;  ///< of conv_head
  double drop_rate = 0;
  Linear classifier;
};

Architecture efficientnet_architecture();

}  // namespace tessera
