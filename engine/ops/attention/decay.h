#pragma once

#include "engine/core/tensor.h"

namespace tessera {

/// Spatial decay: a bias, never positive, that is added to the attention scores. The first `prefix` tokens
/// have no position (the class token); height * width tokens follow in raster order. d(i, j) is the Manhattan
/// distance of two tokens in steps of the grid. Rows and columns of prefix tokens are zero.
struct Grid {
  int64_t height = 0, width = 0;
  bool operator==(const Grid&) const = default;
};

/// The constants d(i, j), zero for the prefix; without `use_distance`, 1 instead of d. -> [N, N].
/// Fails for an empty grid or a negative prefix.
Tensor distances(Grid grid, int64_t prefix, bool use_distance, DType dtype, Device device = Device::cpu);

/// -slope_h d(i, j): RMT's decay with slope_h = -log(gamma_h), or the same slope for all heads. slopes [H], a
/// constant; -> [H, N, N], a constant.
Tensor fixed_decay(const Tensor& slopes, Grid grid, int64_t prefix);

/// -|alpha d(i, j) (g_i + g_j) / 2|: the context-aware gating of the Spatial Decay Transformer, with a gate g
/// for every token (those of the prefix have no effect); without `use_distance`, 1 instead of d. gates [B, N,
/// H];
/// -> [B, H, N, N]. Fails unless N is prefix + height * width.
Tensor content_decay(const Tensor& gates, Grid grid, int64_t prefix = 0, double alpha = 1,
                     bool use_distance = true);

}  // namespace tessera
