#include "engine/ops/mask.h"

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/mask_kernels.h"
#include "engine/ops/write.h"

namespace tessera {

Tensor mask_diagonal(const Tensor& x, double value) {
  check(x.rank() >= 2 && x.dim(-1) == x.dim(-2), "mask_diagonal: input ", x.shape(), " is not [..., N, N]");
  const int64_t tokens = x.dim(-1), matrices = x.shape().elements(0, x.rank() - 2);
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  dispatch(x, "mask_diagonal", [&]<class Dev, class T>() {
    MaskKernels<Dev>::template diagonal<T>(matrices, tokens, x.data<T>(), value, y.data<T>(), false);
  });
  const auto backward = [=](Gradients& g) {
    const Written dx(g, 0);
    dispatch(g.dy(), "mask_diagonal", [&]<class Dev, class T>() {
      MaskKernels<Dev>::template diagonal<T>(matrices, tokens, g.dy().data<T>(), 0, dx.data<T>(), dx.add());
    });
  };
  return record("mask_diagonal", y, {x}, backward);
}

}  // namespace tessera
