#pragma once

#include <vector>

#include "models/architectures.h"
#include "models/parts/block.h"
#include "models/parts/tokenizer.h"

namespace tessera {

/// CaiT (Touvron et al., 2021) as the SPT and LSA paper trains it: patch layers, then class layers.
///
///   x = T(image) + pos                                             patches only
///   x = x + g1 * Talk(LN(x), LN(x));  x = x + g2 * MLP(LN(x))      depth times
///   c = cls
///   c = c + g1 * Talk(LN(c), x);      c = c + g2 * MLP(LN(c))      class_depth times
///   logits = head(LN(c))
///
/// g1 and g2 are layer scale [D]. In a class layer the class token is the only query; keys and values come
/// from the patches alone, without a layer norm, and the heads mix too (the SPT and LSA authors' code).
///
/// LSA's diagonal mask: the paper's equation sets the diagonal scores to minus infinity (mask_fill "-inf").
/// The authors' released code sets them to 0 before the heads mix (mask_fill "zero"), which l-cait and
/// sl-cait do.
struct CaiT {
  CaiT(const Json& config, const Scope& scope);

  Tensor operator()(const Tensor& image, Pass& pass) const;  ///< [B, C, H, W] -> [B, K]

  /// The diagonal of the scores under mask_diagonal: minus infinity after the heads have mixed (the paper's
  /// equation), or 0 before they mix (its released code).
  enum class MaskFill { none, infinity, zero };

  /// Talking-heads attention (Shazeer et al., 2020), which mixes the heads before and after the softmax, of q
  /// [B, H, N, d], k, v [B, H, M, d] -> [B, N, H d]:
  ///   s[h] = the scores of head h with their terms;  t[g] = sum_h L[g, h] s[h];  a = softmax(t);
  ///   b[g] = sum_h W[g, h] a[h];  y = concat_g b[g] v_g
  struct Talk {
    Talk() = default;
    Talk(const Scope& scope, int64_t heads);
    Tensor operator()(const Tensor& q, const Tensor& k, const Tensor& v, const ScoreTerms& terms,
                      MaskFill diagonal) const;

    Tensor proj_l, proj_w;  ///< [H, H]
    std::string path, path_l, path_w;
  };

  struct ClassAttention {
    ClassAttention(const Scope& scope, int64_t dim, const AttentionOptions& options);

    Linear q, k, v, proj;
    Tensor scale;  ///< [H], LSA's learned scale; undefined without it
  };

  /// A patch layer, or a class layer if `class_attn` is set.
  struct Layer {
    LayerNorm norm1;
    Attention attn;
    std::optional<ClassAttention> class_attn;
    Talk talk;
    Tensor gamma_1, gamma_2;  ///< [D]
    LayerNorm norm2;
    Mlp mlp;
    double drop_path = 0;
    std::string path;
  };

  Tokenizer patch_embed;
  Tensor pos_embed, cls_token;  ///< [1, N, D], [1, 1, D]
  std::optional<SpatialPrior> prior;
  std::vector<Layer> blocks, blocks_token_only;
  LayerNorm norm;
  Linear head;
  AttentionOptions attention;
  MaskFill fill = MaskFill::none;

 private:
  Layer layer(const Scope& scope, int64_t dim, int64_t hidden, int64_t number, double rate, double eps) const;
  /// The rest of a layer after attention: x = x + g1 * attended, then the MLP.
  Tensor after_attention(const Layer& layer, const Tensor& x, const Tensor& attended,
                         const BlockDraws& draws) const;
  Tensor patch_layer(const Layer& layer, const Tensor& x, const Tensor& omega, Pass& pass) const;
  Tensor class_layer(const Layer& layer, const Tensor& cls, const Tensor& x, Pass& pass) const;
  /// Attention of a layer, of its normalised input.
  Tensor patch_attention(const Layer& layer, const Tensor& normed, const Tensor& omega) const;
  Tensor class_attention(const Layer& layer, const Tensor& normed, const Tensor& x) const;
};

Architecture cait_architecture();

}  // namespace tessera
