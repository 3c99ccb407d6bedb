#include "engine/ops/attention/decay.h"

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/attention/decay_kernels.h"
#include "engine/ops/catalog.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/shape.h"

namespace tessera {

namespace {

void check_gates(const Tensor& gates, int64_t tokens, Grid grid, int64_t prefix) {
  check(gates.rank() == 3, "content_decay: gates ", gates.shape(), " are not [B, N, H]");
  check(gates.dim(1) == tokens, "content_decay: gates ", gates.shape(), " of ", gates.dim(1), " tokens, but ",
        prefix, " and a grid of ", grid.height, " x ", grid.width, " make ", tokens);
}

}  // namespace

Tensor distances(Grid grid, int64_t prefix, bool use_distance, DType dtype, Device device) {
  check(grid.height > 0 && grid.width > 0 && prefix >= 0, "decay: a grid of ", grid.height, " x ", grid.width,
        " after a prefix of ", prefix, "; the grid needs a token, the prefix 0 or more");
  const int64_t tokens = prefix + grid.height * grid.width;
  const Tensor distance = Tensor::empty({tokens, tokens}, dtype, device);
  dispatch(distance, "decay", [&]<class Dev, class T>() {
    DecayKernels<Dev>::template distances<T>(grid.height, grid.width, prefix, use_distance,
                                             distance.data<T>());
  });
  return distance;
}

Tensor fixed_decay(const Tensor& slopes, Grid grid, int64_t prefix) {
  check(slopes.rank() == 1, "fixed_decay: slopes ", slopes.shape(), " are not one a head, [H]");
  const Tensor distance = distances(grid, prefix, true, wide(slopes.dtype()), slopes.device());
  const int64_t heads = slopes.dim(0), tokens = distance.dim(0);
  const Tensor y = Tensor::empty({heads, tokens, tokens}, slopes.dtype(), slopes.device());
  dispatch(slopes, "fixed_decay", [&]<class Dev, class T>() {
    DecayKernels<Dev>::template fixed<T>(heads, tokens, slopes.data<T>(), distance.data<Wide<T>>(),
                                         y.data<T>());
  });
  return y;
}

Tensor content_decay(const Tensor& gates, Grid grid, int64_t prefix, double alpha, bool use_distance) {
  const Tensor distance = distances(grid, prefix, use_distance, wide(gates.dtype()), gates.device());
  const int64_t tokens = distance.dim(0);
  check_gates(gates, tokens, grid, prefix);
  const int64_t images = gates.dim(0), heads = gates.dim(2);
  const Tensor y = Tensor::empty({images, heads, tokens, tokens}, gates.dtype(), gates.device());
  dispatch(gates, "content_decay", [&]<class Dev, class T>() {
    DecayKernels<Dev>::template content_forward<T>({images, heads, tokens}, alpha, distance.data<Wide<T>>(),
                                                   gates.data<T>(), y.data<T>());
  });
  const auto backward = [=](Gradients& g) {
    const InputGradient dgates(g, 0);
    dispatch(gates, "content_decay", [&]<class Dev, class T>() {
      DecayKernels<Dev>::template content_backward<T>({images, heads, tokens}, alpha,
                                                      distance.data<Wide<T>>(), gates.data<T>(),
                                                      g.dy().data<T>(), dgates.target<T>());
    });
  };
  const Tensor made = record("content_decay", y, {gates}, backward);
  describe_step(made, [&] { return Attributes{{"alpha", alpha}, {"distance", distance}}; });
  return made;
}

}  // namespace tessera
