#include "engine/ops/dropout.h"

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/dropout_kernels.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/write.h"

namespace tessera {

namespace {

void check_probability(double p, const char* what) {
  check(p >= 0 && p < 1, what, ": p ", p, " is no probability of at least 0 and below 1");
}

}  // namespace

Tensor dropout(const Tensor& x, double p, uint64_t key) {
  check_probability(p, "dropout");
  if (p == 0) return x;
  const auto run = [p, key](const Tensor& from, const Tensor& to, bool add) {
    dispatch(from, "dropout", [&]<class Dev, class T>() {
      DropoutKernels<Dev>::template dropout<T>(from.elements(), p, key, from.data<T>(), to.data<T>(), add);
    });
  };
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  run(x, y, false);
  const auto backward = [run](Gradients& g) {
    const Written dx(g, 0);
    run(g.dy(), dx.tensor(), dx.add());
  };
  return record("dropout", y, {x}, backward);
}

Tensor channel_dropout(const Tensor& x, double p, uint64_t key) {
  check_probability(p, "channel_dropout");
  check(x.rank() >= 2, "channel_dropout: ", x.shape(), " has no images and channels");
  if (p == 0) return x;
  Shape one_each = x.shape();
  for (int i = 1; i + 1 < x.rank(); ++i) one_each = one_each.with(i, 1);
  return multiply(x, dropout(Tensor::full(one_each, 1, x.dtype(), x.device()), p, key));
}

Tensor drop_path(const Tensor& x, const Tensor& branch, double p, uint64_t key) {
  check_probability(p, "drop_path");
  check(x.shape() == branch.shape() && x.dtype() == branch.dtype() && x.device() == branch.device(),
        "drop_path: ", x.dtype(), " ", x.shape(), " and its branch ", branch.dtype(), " ", branch.shape(),
        " are to be alike");
  check(x.rank() > 0, "drop_path: a scalar has no images");
  const int64_t images = x.dim(0), width = x.shape().elements(1, x.rank());
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  dispatch(x, "drop_path", [&]<class Dev, class T>() {
    DropoutKernels<Dev>::template drop_path<T>(images, width, p, key, x.data<T>(), branch.data<T>(),
                                               y.data<T>(), false);
  });
  const auto backward = [=](Gradients& g) {
    g.add(0, g.dy());
    if (p == 0) return g.add(1, g.dy());
    if (const Written df(g, 1); df)
      dispatch(g.dy(), "drop_path", [&]<class Dev, class T>() {
        DropoutKernels<Dev>::template drop_path<T>(images, width, p, key, static_cast<const T*>(nullptr),
                                                   g.dy().data<T>(), df.data<T>(), df.add());
      });
  };
  return record("drop_path", y, {x, branch}, backward);
}

}  // namespace tessera
