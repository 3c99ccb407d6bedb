#pragma once

#include "engine/io/json.h"
#include "engine/nn/linear.h"
#include "engine/ops/attention/attention.h"

namespace tessera {

/// SP-SA's spatial prior (SP-ViT, Zhou et al., 2022): a small network per head maps the offset (dx, dy) from
/// query to key, in grid steps, to the factor Omega of their score,
///
///   Omega[p, i, j] = b2[p] + sum_m W2[p, m] relu(W1[p m, 0] dx + W1[p m, 1] dy + b1[p m])
///
/// Pairs with one of the `prefix` tokens before the grid (the class token) have Omega = 1.
struct SpatialPrior {
  SpatialPrior() = default;
  SpatialPrior(const Scope& scope, int64_t heads, int64_t hidden, Grid grid, int64_t prefix);

  Tensor operator()() const { return (*this)(grid); }  ///< [heads, N, N]
  /// The factors of the pairs within a part of the grid, such as one of its lines. [heads, N', N']
  Tensor operator()(Grid part) const;

  Linear fc1;                   ///< weight [heads * hidden, 2], bias [heads * hidden]
  Tensor fc2_weight, fc2_bias;  ///< [heads, hidden], [heads]
  Grid grid;
  int64_t heads = 0, hidden = 0, prefix = 0;
  std::string path, fc2_path;

 private:
  Tensor fc2(const Tensor& features) const;  ///< [T, heads * hidden] -> [T, heads]
};

/// Which scores share one network: those of a head, of a layer, or of the whole model.
enum class Sharing { none, head, layer, model };

struct PriorOptions {
  Sharing sharing = Sharing::none;
  int64_t hidden = 16;
};

/// The config's "attention.prior" object.
PriorOptions read_prior(Fields fields);

}  // namespace tessera
