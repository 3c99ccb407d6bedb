#pragma once

#include "engine/core/tensor.h"

namespace tessera {

// Spatial decay: a bias, never positive, added to the attention scores. Tokens are `prefix` ones without a
// place (the class token), then height * width in raster order. d(i, j) is the Manhattan distance of two
// tokens in steps of the grid. Prefix tokens neither decay nor are decayed: their rows and columns are zero.
struct Grid {
  int64_t height = 0, width = 0;
  bool operator==(const Grid&) const = default;
};

// d(i, j) as constants, zero for the prefix; without `use_distance` 1 in place of d. -> [N, N].
// Fails for an empty grid or a negative prefix.
Tensor distances(Grid grid, int64_t prefix, bool use_distance, DType dtype, Device device = Device::cpu);

// -slope_h d(i, j): RMT's decay with slope_h = -log(gamma_h), or the same slope for all heads. slopes [H], a
// constant; -> [H, N, N], a constant.
Tensor fixed_decay(const Tensor& slopes, Grid grid, int64_t prefix);

// -|alpha d(i, j) (g_i + g_j) / 2|: the context-aware gating of the Spatial Decay Transformer, with the gates
// g of all tokens (those of the prefix count for nothing); without `use_distance` 1 in place of d. gates [B,
// N, H];
// -> [B, H, N, N]. Fails unless N is prefix + height * width.
Tensor content_decay(const Tensor& gates, Grid grid, int64_t prefix = 0, double alpha = 1,
                     bool use_distance = true);

}  // namespace tessera
