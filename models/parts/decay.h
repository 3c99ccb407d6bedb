#pragma once

#include "engine/io/json.h"
#include "engine/nn/linear.h"
#include "engine/ops/attention/attention.h"

namespace tessera {

/// Spatial decay (RMT, Fan et al., 2024; SDT, Mao et al., 2025): a bias added to the scores that is never
/// positive. With the Manhattan distance d(i, j) of two tokens on the grid,
///
///   fixed (RMT)     log(gamma_n) d(i, j),  gamma_n = 1 - 2^-(initial + range n / heads) for head n
///   distance        -alpha d(i, j)
///   content (SDT)   -|alpha d(i, j) (G_i + G_j) / 2|,  G = log sigmoid(x Wg^T + b)
///
/// and d = 1 for a content decay without the distance. Pairs with a token before the grid have no decay.
struct DecayOptions {
  enum class Kind { none, fixed, distance, content };

  Kind kind = Kind::none;
  double initial = 2, range = 4;  ///< fixed
  double alpha = 1;               ///< distance, content
  bool use_distance = true;       ///< content
  bool rmt_start = false;         ///< content: the gates start at RMT's rates of `initial` and `range`
};

/// The config's "attention.decay" object.
DecayOptions read_decay(Fields fields);

struct Decay {
  Decay() = default;
  /// A content decay creates the gate's `weight` [heads, dim] and `bias` [heads] in `scope`. They start at
  /// N(0, 0.02^2) and 0; with rmt_start at 0 and the bias with sigmoid(bias_n) = gamma_n, which is the fixed
  /// decay (alpha 1).
  Decay(const Scope& scope, const DecayOptions& options, int64_t dim, int64_t heads);

  /// Sets the decay's fields of `terms` for the tokens x [B, N, D], the input of the layer's q, k and v.
  void apply(const Tensor& x, ScoreTerms& terms) const;

  /// The bias as a matrix, [H, N, N], or [B, H, N, N] for content. Fails if no decay is configured.
  Tensor matrix(const Tensor& x, Grid grid, int64_t prefix) const;

  DecayOptions options;
  Tensor slopes;  ///< [heads]: the decay per unit of distance; undefined for content
  Linear gate;    ///< content

 private:
  Tensor gates(const Tensor& x) const;  ///< [B, N, heads]
};

}  // namespace tessera
