#include "models/parts/offsets.h"

#include <vector>

#include "engine/ops/shape.h"
#include "engine/ops/take.h"

namespace tessera {

Tensor offset_index(Grid grid, int64_t prefix, int sign) {
  const auto [h, w] = grid;
  const int64_t tokens = prefix + h * w, outside = (2 * h - 1) * (2 * w - 1);
  std::vector<int64_t> index(static_cast<size_t>(tokens * tokens), outside);
  for (int64_t i = 0; i < h * w; ++i)
    for (int64_t j = 0; j < h * w; ++j) {
      const int64_t dy = sign * (j / w - i / w), dx = sign * (j % w - i % w);
      index[static_cast<size_t>((i + prefix) * tokens + j + prefix)] =
          (dy + h - 1) * (2 * w - 1) + dx + w - 1;
    }
  return Tensor::from(index, {tokens * tokens});
}

Tensor offsets(Grid grid, DType dtype, Device device) {
  std::vector<double> pairs;
  for (int64_t dy = 1 - grid.height; dy < grid.height; ++dy)
    for (int64_t dx = 1 - grid.width; dx < grid.width; ++dx) {
      pairs.push_back(static_cast<double>(dx));
      pairs.push_back(static_cast<double>(dy));
    }
  return Tensor::from(pairs, {static_cast<int64_t>(pairs.size()) / 2, 2}, dtype).to(device);
}

Tensor offsets_within(const Tensor& table, Grid grid, Grid part) {
  if (part == grid) return table;
  std::vector<int64_t> rows;
  for (int64_t dy = 1 - part.height; dy < part.height; ++dy)
    for (int64_t dx = 1 - part.width; dx < part.width; ++dx)
      rows.push_back((dy + grid.height - 1) * (2 * grid.width - 1) + dx + grid.width - 1);
  return take(table, 0, Tensor::from(rows, {static_cast<int64_t>(rows.size())}));
}

Tensor spread(const Tensor& table, const Tensor& index, int64_t tokens, double fill) {
  const int64_t heads = table.dim(1);
  const Tensor filled = concat({table, Tensor::full({1, heads}, fill, table.dtype(), table.device())}, 0);
  return permute(gather(filled, index.to(filled.device())), {1, 0}).reshape({heads, tokens, tokens});
}

}  // namespace tessera
