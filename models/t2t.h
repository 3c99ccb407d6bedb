#pragma once

#include <optional>
#include <vector>

#include "models/architectures.h"
#include "models/parts/block.h"
#include "models/parts/tokenizer.h"

namespace tessera {

/// T2T-ViT (Yuan et al., 2021) as the SPT and LSA paper trains it. The image becomes tokens in `splits`
/// steps. A soft split S cuts overlapping 3 x 3 windows, 2 pixels apart; every split but the last is followed
/// by a small transformer A, whose tokens form an image again:
///
///   m = image, with SPT joined by its shifted copies
///   m = map(A(S(m)))                                  splits - 1 times
///   x = [cls; project(S(m))] + pos                    pos: a fixed table of sines
///   x = x + (n + Attention(n)),  n = LN(x);  x = x + MLP(LN(x))    depth times
///   logits = head(LN(x_cls))
///
/// A block adds its normalised input n as well, as in the authors' code, and drop path drops n + Attention(n)
/// together.
struct T2T {
  T2T(const Json& config, const Scope& scope);

  Tensor operator()(const Tensor& image, Pass& pass) const;  ///< [B, C, H, W] -> [B, K]
  /// The soft splits: [B, C, H, W] -> [B, N, D]
  Tensor tokens_of(const Tensor& image) const;

  /// Attention of one head of width `dim` on tokens of another `width`, with v in place of the residual input
  /// and the scale 1/sqrt(width):
  ///   u = v + proj(softmax(scale q k^T) v), q, k, v from LN(z);  y = u + MLP(LN(u))
  struct TokenTransformer {
    TokenTransformer(const Scope& scope, int64_t width, int64_t dim, const AttentionOptions& options,
                     double eps);
    Tensor operator()(const Tensor& z) const;  ///< [B, N, width] -> [B, N, dim]

    LayerNorm norm1;
    Linear qkv, proj;
    Tensor scale;  ///< [1], LSA's learned scale; undefined without it
    int64_t width = 0;
    double fixed_scale = 0;  ///< of the scores, where it is not learned
    bool mask_diagonal = false;
    LayerNorm norm2;
    Mlp mlp;
    std::string path, attn_path;

   private:
    Tensor attended(const Tensor& z) const;  ///< u, of LN(z)
  };

  std::optional<Directions> directions;  ///< of SPT's shifts; none: the image alone
  int64_t shift = 0;
  std::vector<TokenTransformer> attentions;
  std::vector<Grid> grids;  ///< after each split
  Linear project;
  std::string tokens_path;
  Tensor cls_token, pos_embed;  ///< [1, 1, D], [1, 1 + N, D]
  std::optional<SpatialPrior> prior;
  std::vector<Block> blocks;
  LayerNorm norm;
  Linear head;
};

Architecture t2t_architecture();

}  // namespace tessera
