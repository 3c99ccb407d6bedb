#include <algorithm>

#include "engine/core/dispatch.h"
#include "engine/cpu/each.h"
#include "engine/ops/take_kernels.h"

namespace tessera {

template <>
template <class T>
void TakeKernels<Cpu>::forward(const TakeSize& size, const int64_t* index, const T* x, T* y) {
  const int64_t outer = size.outer, from = size.from, count = size.count, inner = size.inner;
  parallel_for(outer * count, rows_a_chunk(inner), [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      std::copy_n(x + (r / count * from + index[r % count]) * inner, inner, y + r * inner);
  });
}

template <>
template <class T>
void TakeKernels<Cpu>::backward(const TakeSize& size, const int64_t* index, const T* dy, Target<T> dx) {
  const int64_t outer = size.outer, from = size.from, count = size.count, inner = size.inner;
  parallel_for(outer, 1, [=](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      T* to = dx.data + o * from * inner;
      if (!dx.add) clear(to, from * inner);
      for (int64_t i = 0; i < count; ++i) {
        const T* d = dy + (o * count + i) * inner;
        T* row = to + index[i] * inner;
#pragma omp simd
        for (int64_t j = 0; j < inner; ++j) store(row[j], Wide<T>(row[j]) + Wide<T>(d[j]));
      }
    }
  });
}

TESSERA_FOR_FLOATS(TakeKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(TakeKernels<Cpu>::backward)

}  // namespace tessera
