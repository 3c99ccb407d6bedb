#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/cpu/each.h"
#include "engine/ops/activations_kernels.h"

namespace tessera {

template <class T> void activate(Activation f, const T* x, T* y, int64_t n) {
  with_activation(
      f, [=]<class F>(F) { write_each(0, n, y, false, [=](int64_t i) { return F::value(Wide<T>(x[i])); }); });
}

template <class T> void activate_backward(Activation f, const T* x, const T* dy, T* dx, int64_t n) {
  with_activation(f, [=]<class F>(F) {
    write_each(0, n, dx, false, [=](int64_t i) { return Wide<T>(dy[i]) * F::slope(Wide<T>(x[i])); });
  });
}

template <>
template <class T>
void ActivationKernels<Cpu>::forward(Activation f, int64_t n, const T* x, T* y) {
  parallel_for(n, chunk_length(chunk_elements),
               [=](int64_t begin, int64_t end) { activate(f, x + begin, y + begin, end - begin); });
}

template <>
template <class T>
void ActivationKernels<Cpu>::backward(Activation f, int64_t n, const T* x, const T* dy, Target<T> dx) {
  with_activation(f, [=]<class F>(F) {
    parallel_write(n, dx.data, dx.add, [=](int64_t i) { return Wide<T>(dy[i]) * F::slope(Wide<T>(x[i])); });
  });
}

TESSERA_FOR_FLOATS(activate)
TESSERA_FOR_FLOATS(activate_backward)
TESSERA_FOR_FLOATS(ActivationKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(ActivationKernels<Cpu>::backward)

}  // namespace tessera
