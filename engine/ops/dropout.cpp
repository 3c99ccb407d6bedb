#include "engine/ops/dropout.h"

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/dropout_kernels.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/same_device.h"

namespace tessera {

namespace {

void check_probability(double p, const char* what) {
  check(p >= 0 && p < 1, what, ": p ", p, " is no probability of at least 0 and below 1");
}

}  // namespace

Tensor dropout(const Tensor& x, double p, uint64_t key) {
  check_probability(p, "dropout");
  if (p == 0) return x;
  const int64_t n = x.elements();
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  dispatch(x, "dropout", [&]<class Dev, class T>() {
    DropoutKernels<Dev>::template dropout<T>(n, p, key, x.data<T>(), {y.data<T>()});
  });
  const auto backward = [n, p, key](Gradients& g) {
    const InputGradient dx(g, 0);
    dispatch(g.dy(), "dropout", [&]<class Dev, class T>() {
      DropoutKernels<Dev>::template dropout<T>(n, p, key, g.dy().data<T>(), dx.target<T>());
    });
  };
  const Tensor made = record("dropout", y, {x}, backward);
  describe_step(made, [&] {
    const NoRecording off;
    return Attributes{{"p", p},
                      {"factor", dropout(Tensor::full(x.shape(), 1, x.dtype(), x.device()), p, key)}};
  });
  return made;
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
  check(x.shape() == branch.shape() && x.dtype() == branch.dtype(), "drop_path: ", x.dtype(), " ", x.shape(),
        " and its branch ", branch.dtype(), " ", branch.shape(), " differ; one type and shape are wanted");
  check_same_device("drop_path", {x, branch});
  check(x.rank() > 0, "drop_path: a scalar has no images");
  const RowsSize size{x.dim(0), x.shape().elements(1, x.rank())};
  const Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  dispatch(x, "drop_path", [&]<class Dev, class T>() {
    DropoutKernels<Dev>::template drop_path<T>(size, p, key, x.data<T>(), branch.data<T>(), {y.data<T>()});
  });
  const auto backward = [=](Gradients& g) {
    g.add(0, g.dy());
    if (p == 0) return g.add(1, g.dy());
    if (const InputGradient df(g, 1); df)
      dispatch(g.dy(), "drop_path", [&]<class Dev, class T>() {
        DropoutKernels<Dev>::template drop_path<T>(size, p, key, static_cast<const T*>(nullptr),
                                                   g.dy().data<T>(), df.target<T>());
      });
  };
  const Tensor made = record("drop_path", y, {x, branch}, backward);
  describe_step(made, [&] {
    const NoRecording off;
    const Tensor none = Tensor::zeros({size.rows, 1}, x.dtype(), x.device());
    return Attributes{
        {"p", p},
        {"factor", drop_path(none, Tensor::full({size.rows, 1}, 1, x.dtype(), x.device()), p, key)}};
  });
  return made;
}

}  // namespace tessera
