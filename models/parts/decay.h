#pragma once

#include "engine/io/json.h"
#include "engine/nn/linear.h"
#include "engine/ops/attention/attention.h"

namespace tessera {

// Spatial decay, a bias that is never positive, added to the scores (papers/sdt-rmt-dit-facts.md). With the
// Manhattan distance d(i, j) of two tokens on the grid,
//
//   fixed (RMT)     log(gamma_n) d(i, j),  gamma_n = 1 - 2^-(initial + range n / heads) for head n
//   distance        -alpha d(i, j)
//   content (SDT)   -|alpha d(i, j) (G_i + G_j) / 2|,  G = log sigmoid(x Wg^T + b)
//
// and for content without the distance, d = 1. Tokens before the grid neither decay nor are decayed.
struct DecayOptions {
  enum class Kind { none, fixed, distance, content };

  Kind kind = Kind::none;
  double initial = 2, range = 4;  // fixed
  double alpha = 1;               // distance, content
  bool use_distance = true;       // content
  bool rmt_start = false;  // content: the gates start at RMT's rates, as `initial` and `range` have them
};

// The config's "attention.decay" object.
DecayOptions read_decay(Fields fields);

struct Decay {
  Decay() = default;
  // A content decay makes `weight` [heads, dim] and `bias` [heads] in `scope`, which the names call `gate`.
  // They start at N(0, 0.02^2) and 0; or, to start as the fixed decay (alpha 1), at 0 and the bias for which
  // sigmoid(bias_n) = gamma_n.
  Decay(const Scope& scope, const DecayOptions& options, int64_t dim, int64_t heads);

  // Fills in the decay's part of `terms` for the tokens x [B, N, D], the input of the layer's q, k and v.
  void apply(const Tensor& x, ScoreTerms& terms) const;

  // The bias itself: [H, N, N], or [B, H, N, N] for content.
  Tensor matrix(const Tensor& x, Grid grid, int64_t prefix) const;

  DecayOptions options;
  Tensor slopes;  // [heads]: what one step of distance takes off a head's score; not for content
  Linear gate;    // content

 private:
  Tensor gates(const Tensor& x) const;  // [B, N, heads]
};

}  // namespace tessera
