#include "engine/ops/take.h"

#include <vector>

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/ops/catalog.h"
#include "engine/ops/input_gradient.h"
#include "engine/ops/take_kernels.h"

namespace tessera {

Tensor take(const Tensor& x, int axis, const Tensor& index) {
  const int at = x.shape().axis(axis, "take");
  const int64_t from = x.dim(at), count = index.elements();
  check(index.rank() == 1 && index.dtype() == DType::i64, "take: index ", index.dtype(), " ", index.shape(),
        ", a list of i64 is wanted");
  for (const int64_t i : index.integers())
    check(i >= 0 && i < from, "take: index ", i, " of axis ", axis, " of ", x.shape(), ", which has 0 to ",
          from - 1);
  const TakeSize size{x.shape().elements(0, at), from, count, x.shape().elements(at + 1, x.rank())};
  const Tensor y = Tensor::empty(x.shape().with(at, count), x.dtype(), x.device());
  const Tensor order = index.to(x.device());
  dispatch(x, "take", [&]<class Dev, class T>() {
    TakeKernels<Dev>::template forward<T>(size, order.data<int64_t>(), x.data<T>(), y.data<T>());
  });
  const auto backward = [=](Gradients& g) {
    const InputGradient dx(g, 0);
    dispatch(g.dy(), "take", [&]<class Dev, class T>() {
      TakeKernels<Dev>::template backward<T>(size, order.data<int64_t>(), g.dy().data<T>(), dx.target<T>());
    });
  };
  const Tensor made = record("take", y, {x}, backward);
  describe_step(made, [&] { return Attributes{{"axis", static_cast<double>(at)}, {"index", index}}; });
  return made;
}

Tensor flip(const Tensor& x, int axis) {
  std::vector<int64_t> order;
  const int64_t entries = x.dim(x.shape().axis(axis, "flip"));
  for (int64_t i = entries; i-- > 0;) order.push_back(i);
  return take(x, axis, Tensor::from(order, {entries}));
}

}  // namespace tessera
