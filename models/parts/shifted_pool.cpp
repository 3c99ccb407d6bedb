#include "models/parts/shifted_pool.h"

#include "engine/autograd/observe.h"
#include "engine/ops/shape.h"

namespace tessera {

ShiftedPool::ShiftedPool(const Scope& scope, const Options& options, int64_t in_dim, int64_t dim,
                         Grid its_grid, bool has_cls, double eps)
    : grid(its_grid) {
  check(grid.height % 2 == 0 && grid.width % 2 == 0, "pool: S_pool joins 2 x 2 tokens, the map has ",
        grid.height, " x ", grid.width);
  const Tokenizer::Options two{.shifted = true,
                               .patch_size = 2,
                               .directions = options.directions,
                               .ratio = options.ratio,
                               .post_norm = false};
  tokens = Tokenizer(scope, two, in_dim, dim, eps);
  if (has_cls) fc.emplace(scope / "fc", in_dim, dim);
}

Tensor ShiftedPool::operator()(const Tensor& x) const {
  const ModuleScope here(tokens.path);
  const int64_t count = grid.height * grid.width, cls = x.dim(1) - count;
  const Tensor patches = cls == 0 ? x : slice(x, 1, cls, count);
  const Tensor map = permute(patches, {0, 2, 1}).reshape({x.dim(0), x.dim(2), grid.height, grid.width});
  const Tensor pooled = tokens(map);
  return fc ? concat({(*fc)(slice(x, 1, 0, cls)), pooled}, 1) : pooled;
}

std::optional<ShiftedPool::Options> read_pool(Fields& fields, const char* own_kind) {
  auto pool = fields.find_object("pool");
  if (!pool) return {};
  if (pool->choice("kind", {own_kind, "shifted"}) == own_kind) {
    pool->done();
    return {};
  }
  ShiftedPool::Options options;
  options.directions = read_directions(*pool);
  options.ratio = read_shift_ratio(*pool, 2, true);
  pool->done();
  return options;
}

}  // namespace tessera
