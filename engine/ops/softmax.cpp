#include "engine/ops/softmax.h"

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/softmax_kernels.h"
#include "engine/ops/write.h"

namespace tessera {

namespace {

Tensor normalized(OpName op, bool log, const Tensor& x) {
  const char* what = op->name.data();
  check(x.rank() > 0, what, ": a scalar has no row");
  const int64_t width = x.dim(-1), rows = x.shape().elements(0, x.rank() - 1);
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  dispatch(x, what, [&]<class Dev, class T>() {
    SoftmaxKernels<Dev>::template forward<T>(log, rows, width, x.data<T>(), y.data<T>());
  });
  const auto backward = [=](Gradients& g) {
    const Written dx(g, 0);
    dispatch(y, what, [&]<class Dev, class T>() {
      SoftmaxKernels<Dev>::template backward<T>(log, rows, width, y.data<T>(), g.dy().data<T>(), dx.data<T>(),
                                                dx.add());
    });
  };
  return record(op, y, {x}, backward);
}

}  // namespace

Tensor softmax(const Tensor& x) { return normalized("softmax", false, x); }
Tensor log_softmax(const Tensor& x) { return normalized("log_softmax", true, x); }

}  // namespace tessera
