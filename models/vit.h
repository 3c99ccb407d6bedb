#pragma once

#include <optional>
#include <vector>

#include "models/model.h"
#include "models/parts/block.h"
#include "models/parts/tokenizer.h"

namespace tessera {

// The vision transformer (Dosovitskiy et al., 2021), with SPT, LSA, SP-SA and decay as its config asks:
//
//   x = [cls; T(image)] + pos
//   x = x + Attention(LN(x));  x = x + MLP(LN(x))        depth times
//   logits = head(LN(x_cls))
struct ViT {
  ViT(const Json& config, const Scope& scope);

  Tensor operator()(const Tensor& image, Pass& pass) const;  // [B, C, H, W] -> [B, K]

  Tokenizer patch_embed;
  Tensor cls_token, pos_embed;        // [1, 1, D], [1, 1 + N, D]
  std::optional<SpatialPrior> prior;  // the one that all layers share
  std::vector<Block> blocks;
  LayerNorm norm;
  Linear head;
};

// vit, t-vit (learned scale), m-vit (diagonal mask), l-vit (LSA), s-vit (SPT), sl-vit, as the SPT and LSA
// paper sizes them; an empty Json for another name.
Json vit_preset(const std::string& name, int64_t image_size, int64_t num_classes);

}  // namespace tessera
