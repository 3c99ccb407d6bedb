#pragma once

#include <optional>
#include <vector>

#include "models/architectures.h"
#include "models/parts/block.h"
#include "models/parts/shifted_pool.h"

namespace tessera {

/// The pooling-based vision transformer (Heo et al., 2021): stages of ViT blocks. Pooling between stages
/// halves the height and width of the token map and doubles the token width. The class token takes a linear
/// layer of its own instead of the pooling.
///
///   x = [cls; T(image)] + pos
///   x = pool(x)                     before every stage but the first
///   x = ViT block(x)                depth_i times
///   logits = head(LN(x_cls))
struct PiT {
  PiT(const Json& config, const Scope& scope);

  Tensor operator()(const Tensor& image, Pass& pass) const;  ///< [B, C, H, W] -> [B, K]

  /// A 3 x 3 depthwise convolution of stride 2 with two filters a channel, then a 1 x 1 convolution. The 1 x
  /// 1 convolution is the SPT and LSA authors'; the PiT paper has none.
  struct ConvPool {
    ConvPool(const Scope& scope, int64_t dim, Grid grid);
    Tensor operator()(const Tensor& x) const;  ///< [B, 1 + h w, D] -> [B, 1 + ceil(h/2) ceil(w/2), 2 D]

    Tensor conv_weight, conv_bias, point_weight, point_bias;
    Linear fc;
    Grid grid;
    std::string path, conv_path, point_path;

   private:
    Tensor pooled(const Tensor& map) const;  ///< [B, h, w, D] -> [B, ceil(h/2) ceil(w/2), 2 D]
  };

  /// The pooling before the stage (none before the first), then its blocks.
  struct Stage {
    std::optional<ConvPool> conv_pool;
    std::optional<ShiftedPool> shifted_pool;
    std::vector<Block> blocks;
  };

  Tokenizer patch_embed;
  Tensor cls_token, pos_embed;  ///< [1, 1, D], [1, 1 + N, D]
  std::vector<Stage> transformers;
  LayerNorm norm;
  Linear head;
};

Architecture pit_architecture();

}  // namespace tessera
