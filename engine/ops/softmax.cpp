#include "engine/ops/softmax.h"

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/softmax_kernels.h"

namespace tessera {

namespace {

Tensor normalized(OpName op, bool log, const Tensor& x) {
  const char* what = op->name.data();
  check(x.rank() > 0, what, ": a scalar has no row");
  const RowsSize size{x.shape().elements(0, x.rank() - 1), x.dim(-1)};
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  dispatch(x, what, [&]<class Dev, class T>() {
    SoftmaxKernels<Dev>::template forward<T>(log, size, x.data<T>(), y.data<T>());
  });
  const auto backward = [=](Gradients& g) {
    const InputGradient dx(g, 0);
    dispatch(y, what, [&]<class Dev, class T>() {
      SoftmaxKernels<Dev>::template backward<T>(log, size, y.data<T>(), g.dy().data<T>(), dx.target<T>());
    });
  };
  return record(op, y, {x}, backward);
}

}  // namespace

Tensor softmax(const Tensor& x) { return normalized("softmax", false, x); }
Tensor log_softmax(const Tensor& x) { return normalized("log_softmax", true, x); }

}  // namespace tessera
