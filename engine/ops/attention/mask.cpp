#include "engine/ops/attention/mask.h"

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/attention/mask_kernels.h"
#include "engine/ops/catalog.h"
#include "engine/ops/input_gradient.h"

namespace tessera {

Tensor mask_diagonal(const Tensor& x, double value) {
  check(x.rank() >= 2 && x.dim(-1) == x.dim(-2), "mask_diagonal: input ", x.shape(), " is not [..., N, N]");
  const int64_t tokens = x.dim(-1), matrices = x.shape().elements(0, x.rank() - 2);
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  dispatch(x, "mask_diagonal", [&]<class Dev, class T>() {
    MaskKernels<Dev>::template diagonal<T>(matrices, tokens, x.data<T>(), value, Target<T>{y.data<T>()});
  });
  const auto backward = [=](Gradients& g) {
    const InputGradient dx(g, 0);
    dispatch(g.dy(), "mask_diagonal", [&]<class Dev, class T>() {
      MaskKernels<Dev>::template diagonal<T>(matrices, tokens, g.dy().data<T>(), 0, dx.target<T>());
    });
  };
  const Tensor made = record("mask_diagonal", y, {x}, backward);
  describe_step(made, [&] { return Attributes{{"value", value}}; });
  return made;
}

}  // namespace tessera
