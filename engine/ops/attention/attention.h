#pragma once

#include "engine/core/tensor.h"
#include "engine/ops/attention/decay.h"
#include "engine/ops/attention/mask.h"

namespace tessera {

/// The terms that turn q . k into the scores of attention. For query i, key j and head h of image b, in this
/// order:
///
///   s = scale_h (q_i . k_j)            Vaswani et al., 2017: 1 / sqrt(d); learned in LSA (Lee et al., 2021)
///   s = s * prior_hij                  SP-SA's spatial prior
///   s = s + bias_hij                   Swin's relative position bias (Liu et al., 2021)
///   s = s - slope_h d(i, j)            RMT's decay by Manhattan distance (Fan et al., 2024)
///   s = s - |alpha d(i, j) (g_i + g_j) / 2|     the content decay of the Spatial Decay Transformer
///   s = s + mask_wij, w = b mod W      Swin's shifted windows
///   s_ii = -inf                        LSA's diagonal mask
///
/// An undefined term is absent and costs nothing. learned_scale, prior, bias and gates get gradients; slopes
/// and mask are constants. All have q's type and device. All but the scale need as many queries as keys, N.
struct ScoreTerms {
  double scale = 1;           ///< used where learned_scale is undefined
  Tensor learned_scale = {};  ///< [H]
  Tensor prior = {};          ///< [H, N, N], or [1, N, N] for all heads
  Tensor bias = {};           ///< [H, N, N]
  Tensor slopes = {};         ///< [H]
  Tensor gates = {};          ///< [B, N, H]
  double alpha = 1;           ///< of the gates
  bool use_distance = true;   ///< of the gates: without it, d is replaced by 1
  Grid grid = {};             ///< of the slopes and gates, see decay.h; `prefix` tokens come before it
  int64_t prefix = 0;
  Tensor mask = {};  ///< [W, N, N], B a multiple of W
  bool mask_diagonal = false;
};

/// Multi-head attention: y_i = sum_j softmax_j(s_ij) v_j for each head, the heads side by side.
/// qkv [B, N, 3 H d], the packed projection: q's heads, then k's, then v's, read in place; -> [B, N, H d].
/// The scores are never stored: the backward pass computes them again, with the log-sum-exp of each row (Dao
/// et al., 2022). Fails where shapes, types or devices do not fit, and for a single token under the diagonal
/// mask.
Tensor attention(const Tensor& qkv, int64_t heads, const ScoreTerms& terms = {});

/// Attention with separate queries [B, Nq, H d] and keys and values [B, Nk, H d]; -> [B, Nq, H d].
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads,
                 const ScoreTerms& terms = {});

/// Attention of the first M of N tokens: q [B, M, H d] of these, and kv [B, N, 2 H d] of all, the keys' heads
/// and then the values', read in place; -> [B, M, H d]. The terms are those of all N tokens, and rows [0, M)
/// of them act.
Tensor attention_of_first(const Tensor& q, const Tensor& kv, int64_t heads, const ScoreTerms& terms = {});

/// The plain twin: the definition, composed from recorded ops, with the same values and gradients.
Tensor attention_plain(const Tensor& qkv, int64_t heads, const ScoreTerms& terms = {});
Tensor attention_plain(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads,
                       const ScoreTerms& terms = {});
Tensor attention_of_first_plain(const Tensor& q, const Tensor& kv, int64_t heads,
                                const ScoreTerms& terms = {});

/// The steps of attention_plain, for other forms of attention (CaiT's talking heads): x [B, N, H d] <->
/// [B, H, N, d], and the scores s [B, H, Nq, Nk] = q . k with all terms applied, ready for the softmax.
Tensor split_heads(const Tensor& x, int64_t heads);
Tensor merge_heads(const Tensor& x);
Tensor apply_terms(Tensor s, int64_t heads, const ScoreTerms& terms);

/// split_heads() of a part of x [B, N, parts H d] -> [B, H, N, d]: of q, k or v where they lie side by side.
/// It is one copy where no tape and no observer asks for the slice in between.
Tensor split_heads(const Tensor& x, int64_t heads, int64_t part, int64_t parts);

/// Multiply-accumulates of the two products, q k^T and P v, with d = `head_dim`.
constexpr int64_t attention_macs(int64_t images, int64_t heads, int64_t queries, int64_t keys,
                                 int64_t head_dim) {
  return 2 * images * heads * queries * keys * head_dim;
}

/// The sizes of attention on q, k and v. The functions check the tensors and every term; each form of
/// attention calls its own.
struct AttentionSizes {
  int64_t images, heads, queries, keys, head_dim;
  int64_t macs() const { return attention_macs(images, heads, queries, keys, head_dim); }
};
AttentionSizes attention_sizes(const Tensor& qkv, int64_t heads, const ScoreTerms& terms);
AttentionSizes attention_sizes(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads,
                               const ScoreTerms& terms);
AttentionSizes sizes_of_first(const Tensor& q, const Tensor& kv, int64_t heads, const ScoreTerms& terms);

}  // namespace tessera
