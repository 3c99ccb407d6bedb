#include "engine/core/dispatch.h"
#include "engine/cuda/launch.h"
#include "engine/ops/take_kernels.h"

namespace tessera {

template <>
template <class T>
void TakeKernels<Cuda>::forward(const TakeSize& size, const int64_t* index, const T* x, T* y) {
  const int64_t outer = size.outer, from = size.from, count = size.count, inner = size.inner;
  map(outer * count * inner, y, false, [=] __device__(int64_t k) {
    const int64_t row = k / inner, o = row / count;
    return Wide<T>(x[(o * from + index[row - o * count]) * inner + k - row * inner]);
  });
}

// Each element of dx searches the whole index, in order.
template <>
template <class T>
void TakeKernels<Cuda>::backward(const TakeSize& size, const int64_t* index, const T* dy, Target<T> dx) {
  const int64_t outer = size.outer, from = size.from, count = size.count, inner = size.inner;
  map(outer * from * inner, dx.data, dx.add, [=] __device__(int64_t k) {
    const int64_t row = k / inner, o = row / from, r = row - o * from, j = k - row * inner;
    Wide<T> sum = 0;
    for (int64_t i = 0; i < count; ++i)
      if (index[i] == r) sum += Wide<T>(dy[(o * count + i) * inner + j]);
    return sum;
  });
}

TESSERA_FOR_FLOATS(TakeKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(TakeKernels<Cuda>::backward)

}  // namespace tessera
