#include <array>
#include <type_traits>

#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/cpu/each.h"
#include "engine/ops/activations_bf16.h"
#include "engine/ops/activations_kernels.h"

namespace tessera {

namespace {

constexpr std::array<float, bf16_panel> filled(float value) {
  std::array<float, bf16_panel> all{};
  all.fill(value);
  return all;
}

}  // namespace

template <class T> void activate(Activation f, const T* x, T* y, int64_t n) {
  if constexpr (std::is_same_v<T, bf16>)
    if (const Bf16Norm norm(f); norm) {
      // 1 x - 0 is x, and -0 for -0.
      static constexpr std::array<float, bf16_panel> one = filled(1), zero = filled(-0.0f);
      return norm(n, bf16_panel, one.data(), zero.data(), x, nullptr, y);
    }
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
