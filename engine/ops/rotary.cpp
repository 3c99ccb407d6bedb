#include "engine/ops/rotary.h"

#include <algorithm>
#include <cmath>

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/rotary_kernels.h"
#include "engine/ops/same_device.h"

namespace tessera {

Tensor turns_of(const Tensor& angles, DType dtype, Device device) {
  std::vector<double> turns;
  for (const double angle : angles.values()) {
    turns.push_back(std::cos(angle));
    turns.push_back(std::sin(angle));
  }
  return Tensor::from(turns, {angles.dim(0), angles.dim(1), 2}, wide(dtype)).to(device);
}

Tensor rotary(const Tensor& x, const Tensor& turns) {
  check(x.rank() >= 2 && turns.rank() == 3 && turns.dim(1) > 0 && turns.dim(2) == 2, "rotary: input ",
        x.shape(), " with turns ", turns.shape(), "; [..., N, H d] and [N, d / 2, 2] are wanted");
  check(turns.dtype() == wide(x.dtype()), "rotary: input ", x.dtype(), " takes turns ", wide(x.dtype()),
        ", not ", turns.dtype());
  check_same_device("rotary", {x, turns});
  const int64_t tokens = turns.dim(0), pairs = turns.dim(1), width = x.dim(-1);
  check(x.dim(-2) == tokens && width % (2 * pairs) == 0, "rotary: input ", x.shape(), " with turns ",
        turns.shape(), " of ", tokens, " tokens and heads of ", 2 * pairs, " channels");
  const RotarySize size{x.elements() / std::max<int64_t>(width, 1), width, tokens, pairs};
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  dispatch(x, "rotary", [&]<class Dev, class T>() {
    RotaryKernels<Dev>::template turn<T>(size, turns.data<Wide<T>>(), false, x.data<T>(), {y.data<T>()});
  });
  const auto backward = [=](Gradients& g) {
    const InputGradient dx(g, 0);
    dispatch(g.dy(), "rotary", [&]<class Dev, class T>() {
      RotaryKernels<Dev>::template turn<T>(size, turns.data<Wide<T>>(), true, g.dy().data<T>(),
                                           dx.target<T>());
    });
  };
  const Tensor made = record("rotary", y, {x}, backward);
  describe_step(made, [&] { return Attributes{{"turns", turns.detach()}}; });
  return made;
}

Tensor raster_angles(int64_t tokens, int64_t head_dim) {
  check(head_dim > 0 && head_dim % 2 == 0, "rotary: a head of ", head_dim, " channels has no whole pairs");
  const int64_t pairs = head_dim / 2;
  const Tensor angles = Tensor::empty({tokens, pairs}, DType::f64);
  for (int64_t p = 0; p < tokens; ++p)
    for (int64_t k = 0; k < pairs; ++k)
      angles.data<double>()[p * pairs + k] =
          static_cast<double>(p) *
          std::pow(10000.0, -static_cast<double>(k) / static_cast<double>(std::max<int64_t>(pairs - 1, 1)));
  return angles;
}

}  // namespace tessera
