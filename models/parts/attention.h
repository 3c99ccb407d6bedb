#pragma once

#include <optional>

#include "engine/io/json.h"
#include "engine/nn/linear.h"
#include "engine/ops/attention.h"
#include "models/parts/decay.h"
#include "models/parts/prior.h"

namespace tessera {

// The config's "attention" object (of one stage).
struct AttentionOptions {
  int64_t heads = 0;
  int64_t head_dim = 0;        // dim / heads where the config gives none
  bool qkv_bias = false;
  bool learned_scale = false;  // LSA: one a head, from 1/sqrt(head_dim)
  bool mask_diagonal = false;  // LSA
  bool relative_bias = false;  // Swin's table, over the whole grid
  PriorOptions prior;          // SP-SA
  Json decay;                  // RMT, SDT; see Decay
};

AttentionOptions read_attention(const Json& options, int64_t dim);

// Multi-head self-attention with its score terms (reference/attention.py), for tokens on `grid` after `prefix`
// others (the class token). `plain` runs the definition in place of the fused op: slow, for reading and
// checking.
struct Attention {
  Attention() = default;
  Attention(const Scope& scope, int64_t dim, const AttentionOptions& options, Grid grid, int64_t prefix);

  // x [B, N, D]; omega [1, N, N], the model's own prior, or undefined -> [B, N, D]
  Tensor operator()(const Tensor& x, const Tensor& omega = {}) const;

  // Everything that is done to the scores, for the tokens x.
  ScoreTerms terms(const Tensor& x, const Tensor& omega) const;

  AttentionOptions options;
  Grid grid;
  int64_t prefix = 0;
  Linear qkv, proj;
  Tensor scale;                         // [H], learned
  Tensor relative_position_bias_table;  // [(2h-1)(2w-1), H]
  std::optional<SpatialPrior> prior;
  Decay decay;
  bool plain = false;
  std::string path;
};

}  // namespace tessera
