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

// The config's "attention" object (of one stage).
struct AttentionOptions {
  int64_t heads = 0;
  int64_t head_dim = 0;  // dim / heads where the config gives none
  bool qkv_bias = false;
  bool learned_scale = false;  // LSA: one a head, from 1/sqrt(head_dim)
  bool mask_diagonal = false;  // LSA
  bool relative_bias = false;  // Swin's table, over the whole grid
  PriorOptions prior;          // SP-SA
  DecayOptions decay;          // RMT, SDT
  Init qkv_init = nullptr;     // of qkv's weight; null: by the scope's rule
};

AttentionOptions read_attention(Fields fields, int64_t dim);

// Every Attention of this thread runs the definition (attention_plain) instead of the fused op: slow, but an
// Observer sees each score and probability.
class PlainAttention : public ThreadScope<PlainAttention> {};

// attention (engine/ops/attention/attention.h), or attention_plain while a PlainAttention lives.
Tensor attend(const Tensor& qkv, int64_t heads, const ScoreTerms& terms);
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, int64_t heads, const ScoreTerms& terms);

// Multi-head self-attention with its score terms (reference/attention.py), for tokens on `grid` after
// `prefix` others (the class token).
struct Attention {
  Attention() = default;
  Attention(const Scope& scope, int64_t dim, const AttentionOptions& options, Grid grid, int64_t prefix);

  // x [B, N, D]; omega [1, N, N], the model's own prior, or undefined; mask [W, N, N], added to the scores of
  // image b where w = b mod W, or undefined -> [B, N, D]
  Tensor operator()(const Tensor& x, const Tensor& omega = {}, const Tensor& mask = {}) const;

  // Everything that is done to the scores, for the tokens x.
  ScoreTerms terms(const Tensor& x, const Tensor& omega) const;
  // The same within each line of the grid, whose tokens are all of x: those entries of every term.
  ScoreTerms terms(const Tensor& x, Lines lines) const;

  AttentionOptions options;
  Grid grid;
  int64_t prefix = 0;
  Linear qkv, proj;
  Tensor scale;                         // [H], learned
  Tensor relative_position_bias_table;  // [(2h-1)(2w-1), H]
  std::optional<SpatialPrior> prior;
  Decay decay;
  std::string path;

 private:
  // What is not computed from the tokens, for the pairs of the grid or of a part of it, one of its lines.
  ScoreTerms terms_of_pairs(Grid part) const;
};

}  // namespace tessera
