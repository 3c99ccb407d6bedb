#pragma once

#include <optional>
#include <vector>

#include "models/model.h"
#include "models/parts/block.h"
#include "models/parts/shifted_pool.h"

namespace tessera {

// The pooling-based vision transformer (Heo et al., 2021): stages of ViT blocks; between them the map of
// visual tokens is halved and the width doubled. The class token goes along through a linear layer of its
// own.
struct PiT {
  PiT(const Json& config, const Scope& scope);

  Tensor operator()(const Tensor& image, Pass& pass) const;  // [B, C, H, W] -> [B, K]

  // A 3 x 3 depthwise convolution of stride 2, two filters a channel, then a 1 x 1 convolution (the SPT and
  // LSA paper's code; the PiT paper has no 1 x 1).
  struct ConvPool {
    ConvPool(const Scope& scope, int64_t dim, Grid grid);
    Tensor operator()(const Tensor& x) const;  // [B, 1 + h w, D] -> [B, 1 + ceil(h/2) ceil(w/2), 2 D]

    Tensor conv_weight, conv_bias, point_weight, point_bias;
    Linear fc;
    Grid grid;
    std::string path;
  };

  // The pooling that leads to it (none for the first), then its blocks.
  struct Stage {
    std::optional<ConvPool> conv_pool;
    std::optional<ShiftedPool> shifted_pool;
    std::vector<Block> blocks;
  };

  Tokenizer patch_embed;
  Tensor cls_token, pos_embed;  // [1, 1, D], [1, 1 + N, D]
  std::vector<Stage> transformers;
  LayerNorm norm;
  Linear head;
};

// pit, s-pit (SPT), l-pit (LSA), sl-pit, sl-pit-spool (S_pool too); an empty Json for another name.
Json pit_preset(const std::string& name, int64_t image_size, int64_t num_classes);

}  // namespace tessera
