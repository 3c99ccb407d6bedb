#include "engine/core/dispatch.h"
#include "engine/cuda/launch.h"
#include "engine/cuda/rounded_math.h"
#include "engine/ops/activations_kernels.h"

namespace tessera {

namespace {

template <class F, class T> void activate_all(int64_t n, const T* x, T* y) {
  using W = Wide<T>;
  map(
      n, y, false, [] __device__(int64_t, W value) { return W(F::value(ActivationMath<T>(value))); }, x);
}

template <class F, class T> void slope_all(int64_t n, const T* x, const T* dy, Target<T> dx) {
  using W = Wide<T>;
  map(
      n, dx.data, dx.add,
      [] __device__(int64_t, W value, W d) { return d * W(F::slope(ActivationMath<T>(value))); }, x, dy);
}

}  // namespace

template <>
template <class T>
void ActivationKernels<Cuda>::forward(Activation f, int64_t n, const T* x, T* y) {
  with_activation(f, [&]<class F>(F) { activate_all<F>(n, x, y); });
}

template <>
template <class T>
void ActivationKernels<Cuda>::backward(Activation f, int64_t n, const T* x, const T* dy, Target<T> dx) {
  with_activation(f, [&]<class F>(F) { slope_all<F>(n, x, dy, dx); });
}

TESSERA_FOR_FLOATS(ActivationKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(ActivationKernels<Cuda>::backward)

}  // namespace tessera
