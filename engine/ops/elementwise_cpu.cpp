#include "engine/core/dispatch.h"
#include "engine/cpu/each.h"
#include "engine/ops/elementwise_kernels.h"

namespace tessera {

namespace {

// Part of the innermost axis. The common strides are constants here, so that the loop vectorises.
template <class F, class T>
void run(int64_t count, const T* a, int64_t step_a, const T* b, int64_t step_b, T* y, bool add) {
  using W = Wide<T>;
  if (step_a == 1 && step_b == 1)
    return write_each(0, count, y, add, [=](int64_t i) { return F::value(W(a[i]), W(b[i])); });
  if (step_a == 1 && step_b == 0)
    return write_each(0, count, y, add, [=, other = W(*b)](int64_t i) { return F::value(W(a[i]), other); });
  if (step_a == 0 && step_b == 1)
    return write_each(0, count, y, add, [=, other = W(*a)](int64_t i) { return F::value(other, W(b[i])); });
  for (int64_t i = 0; i < count; ++i) {
    const W value = F::value(W(a[i * step_a]), W(b[i * step_b]));
    store(y[i], add ? W(y[i]) + value : value);
  }
}

}  // namespace

template <>
template <class T>
void BinaryKernels<Cpu>::forward(Binary f, const Walk<3>& walk, const T* a, const T* b, Target<T> y) {
  const size_t last = static_cast<size_t>(std::max(walk.rank - 1, 0));
  const int64_t step_a = walk.stride[0][last], step_b = walk.stride[1][last];  // that of y is 1
  with_function(f, [&]<class F>(F) {
    parallel_walk(walk, [=](const std::array<int64_t, 3>& at, int64_t count) {
      run<F>(count, a + at[0], step_a, b + at[1], step_b, y.data + at[2], y.add);
    });
  });
}

template <>
template <class T>
void UnaryKernels<Cpu>::forward(Unary f, double c, int64_t n, const T* x, T* y) {
  using W = Wide<T>;
  with_function(f, [=]<class F>(F) {
    parallel_write(n, y, false, [=](int64_t i) { return F::value(W(x[i]), W(c)); });
  });
}

template <>
template <class T>
void UnaryKernels<Cpu>::backward(Unary f, double c, int64_t n, const T* saved, const T* dy, Target<T> dx) {
  using W = Wide<T>;
  with_function(f, [=]<class F>(F) {
    if (saved)
      parallel_write(n, dx.data, dx.add, [=](int64_t i) { return W(dy[i]) * F::slope(W(saved[i]), W(c)); });
    else
      parallel_write(n, dx.data, dx.add, [=](int64_t i) { return W(dy[i]) * F::slope(W(0), W(c)); });
  });
}

TESSERA_FOR_FLOATS(BinaryKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(UnaryKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(UnaryKernels<Cpu>::backward)

}  // namespace tessera
