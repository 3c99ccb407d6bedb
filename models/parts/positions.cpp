#include "models/parts/positions.h"

#include "engine/core/error.h"
#include "engine/ops/resample.h"
#include "engine/ops/shape.h"

namespace tessera {

Tensor resize_pos_embed(const Tensor& pos_embed, Grid from, Grid to, int64_t prefix) {
  const int64_t patches = from.height * from.width;
  check(pos_embed.rank() == 3 && pos_embed.dim(0) == 1 && pos_embed.dim(1) == prefix + patches,
        "positions: ", pos_embed.shape(), " is no embedding of ", prefix, " tokens and a grid of ",
        from.height, " x ", from.width);
  const int64_t dim = pos_embed.dim(2);
  const Tensor map = slice(pos_embed, 1, prefix, patches).reshape({1, from.height, from.width, dim});
  const Tensor resized =
      resample(map, bicubic_taps(from.height, to.height), bicubic_taps(from.width, to.width));
  const Tensor tokens = resized.reshape({1, to.height * to.width, dim});
  return prefix == 0 ? tokens : concat({slice(pos_embed, 1, 0, prefix), tokens}, 1);
}

}  // namespace tessera
