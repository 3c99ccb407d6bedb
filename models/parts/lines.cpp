#include "models/parts/lines.h"

#include "engine/ops/shape.h"

namespace tessera {

Grid line_grid(Grid grid, Lines lines) {
  return lines == Lines::rows ? Grid{1, grid.width} : Grid{grid.height, 1};
}

Tensor by_line(const Tensor& x, Grid grid, Lines lines) {
  const auto [h, w] = grid;
  if (lines == Lines::rows) return x.reshape({-1, w, x.dim(2)});
  return permute(x.reshape({-1, h, w, x.dim(2)}), {0, 2, 1, 3}).reshape({-1, h, x.dim(2)});
}

Tensor from_lines(const Tensor& x, Grid grid, Lines lines) {
  const auto [h, w] = grid;
  if (lines == Lines::rows) return x.reshape({-1, h * w, x.dim(2)});
  return permute(x.reshape({-1, w, h, x.dim(2)}), {0, 2, 1, 3}).reshape({-1, h * w, x.dim(2)});
}

}  // namespace tessera
