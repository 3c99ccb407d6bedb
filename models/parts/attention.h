#pragma once

#include <optional>

#include "engine/core/thread_scope.h"
#include "engine/io/json.h"
#include "engine/nn/linear.h"
#include "engine/ops/attention/attention.h"
#include "models/parts/decay.h"
#include "models/parts/lines.h"
#include "models/parts/prior.h"

namespace tessera {

/// The config's "attention" object, for one stage. models/CONFIG.md explains the keys.
struct AttentionOptions {
  int64_t heads = 0;
  int64_t head_dim = 0;  ///< dim / heads where the config gives none
  bool qkv_bias = false;
  double temperature = 1;      ///< of the softmax, in units of sqrt(head_dim)
  bool learned_scale = false;  ///< LSA: one per head, which starts at scale_of(head_dim)
  bool mask_diagonal = false;  ///< LSA: no token attends to itself
  bool relative_bias = false;  ///< Swin's table of biases by offset, over the whole grid
  PriorOptions prior;          ///< SP-SA
  DecayOptions decay;          ///< RMT, SDT
  Init qkv_init = nullptr;     ///< initialises qkv's weight; null: the scope's rule does

  /// The factor of the scores of keys of `width` channels, 1 / (temperature sqrt(width)).
  double scale_of(int64_t width) const;
};

AttentionOptions read_attention(Fields fields, int64_t dim);

/// While one lives, every Attention of this thread runs the definition (attention_plain) instead of the fused
/// op. That is slow, but lets an Observer see each score and probability.
class PlainAttention : public ThreadScope<PlainAttention> {};

/// The op attention (engine/ops/attention/attention.h), or attention_plain while a PlainAttention lives.
Tensor attend(const Tensor& qkv, int64_t heads, const ScoreTerms& terms);
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads, const ScoreTerms& terms);
Tensor attend_of_first(const Tensor& q, const Tensor& kv, int64_t heads, const ScoreTerms& terms);

/// Multi-head self-attention of tokens on `grid` that follow `prefix` others (the class token). The score
/// terms apply in this order, each if it is configured:
///
///   s  = scale * (q . k)
///   s *= prior                SP-SA
///   s += relative bias        Swin
///   s += decay                RMT, SDT
///   s += mask                 between windows; -inf on the diagonal under LSA
///   y  = proj(softmax(s) v)
struct Attention {
  Attention() = default;
  Attention(const Scope& scope, int64_t dim, const AttentionOptions& options, Grid grid, int64_t prefix);

  /// x [B, N, D] -> [B, N, D]. omega [1, N, N] is the prior that the whole model shares, or undefined. mask
  /// [W, N, N] is added to the scores, its entry b mod W to those of image b, or undefined.
  Tensor operator()(const Tensor& x, const Tensor& omega = {}, const Tensor& mask = {}) const;

  /// Row 0 of what operator() computes, [B, 1, D], without the other tokens' queries.
  Tensor of_first(const Tensor& x, const Tensor& omega = {}) const;

  /// All score terms for the tokens x.
  ScoreTerms terms(const Tensor& x, const Tensor& omega) const;
  /// The score terms of attention within each line of the grid, for tokens x without a prefix.
  ScoreTerms terms(const Tensor& x, Lines lines) const;

  AttentionOptions options;
  Grid grid;
  int64_t prefix = 0;
  Linear qkv, proj;
  Tensor scale;                         ///< [H], LSA's; undefined without it
  Tensor relative_position_bias_table;  ///< [(2h-1)(2w-1), H]
  std::optional<SpatialPrior> prior;
  Decay decay;
  std::string path;

 private:
  /// The score terms that do not depend on the tokens, for the pairs of the grid or of one of its lines.
  ScoreTerms terms_of_pairs(Grid part) const;
};

}  // namespace tessera
