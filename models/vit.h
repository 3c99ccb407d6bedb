#pragma once

#include <optional>
#include <vector>

#include "models/architectures.h"
#include "models/parts/block.h"
#include "models/parts/tokenizer.h"

namespace tessera {

/// The vision transformer (Dosovitskiy et al., 2021); the config adds SPT, LSA, SP-SA and decay:
///
///   x = [cls; T(image)] + pos
///   x = x + Attention(LN(x));  x = x + MLP(LN(x))        depth times
///   logits = head(LN(x_cls))
struct ViT {
  ViT(const Json& config, const Scope& scope);

  Tensor operator()(const Tensor& image, Pass& pass) const;  ///< [B, C, H, W] -> [B, K]

  Tokenizer patch_embed;
  Tensor cls_token, pos_embed;        ///< [1, 1, D], [1, 1 + N, D]
  std::optional<SpatialPrior> prior;  ///< shared by all layers
  std::vector<Block> blocks;
  LayerNorm norm;
  Linear head;
};

Architecture vit_architecture();

}  // namespace tessera
