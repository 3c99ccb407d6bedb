#include "engine/core/dispatch.h"
#include "engine/cuda/walk.h"
#include "engine/ops/elementwise_kernels.h"

namespace tessera {

namespace {

template <class F, class T> void binary(const Walk<3>& walk, const T* a, const T* b, Target<T> y) {
  walk_map(
      walk, y.data, y.add, [=] __device__(Wide<T> p, Wide<T> q) { return F::value(p, q); }, a, b);
}

template <class F, class T> void unary(double c, int64_t n, const T* x, T* y) {
  using W = Wide<T>;
  map(
      n, y, false, [c = W(c)] __device__(int64_t, W value) { return F::value(value, c); }, x);
}

template <class F, class T>
void unary_backward(double c, int64_t n, const T* saved, const T* dy, Target<T> dx) {
  using W = Wide<T>;
  if (saved)
    map(
        n, dx.data, dx.add, [c = W(c)] __device__(int64_t, W d, W s) { return d * F::slope(s, c); }, dy,
        saved);
  else
    map(
        n, dx.data, dx.add, [c = W(c)] __device__(int64_t, W d) { return d * F::slope(W(0), c); }, dy);
}

}  // namespace

template <>
template <class T>
void BinaryKernels<Cuda>::forward(Binary f, const Walk<3>& walk, const T* a, const T* b, Target<T> y) {
  with_function(f, [&]<class F>(F) { binary<F>(walk, a, b, y); });
}

template <>
template <class T>
void UnaryKernels<Cuda>::forward(Unary f, double c, int64_t n, const T* x, T* y) {
  with_function(f, [&]<class F>(F) { unary<F>(c, n, x, y); });
}

template <>
template <class T>
void UnaryKernels<Cuda>::backward(Unary f, double c, int64_t n, const T* saved, const T* dy, Target<T> dx) {
  with_function(f, [&]<class F>(F) { unary_backward<F>(c, n, saved, dy, dx); });
}

TESSERA_FOR_FLOATS(BinaryKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(UnaryKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(UnaryKernels<Cuda>::backward)

}  // namespace tessera
