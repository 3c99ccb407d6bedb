#include <cmath>

#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/cpu/each.h"
#include "engine/optim/chunks.h"
#include "engine/optim/clip_kernels.h"

namespace tessera {

template <> template <class T> double ClipKernels<Cpu>::squares(const ClipItem<T>* items, int64_t count) {
  const Chunks chunks(items, count);
  return parallel_sum<double>(chunks.size(), 1, [&](int64_t c, int64_t) {
    const Chunks::Chunk at = chunks[c];
    const T* g = items[at.item].g;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = at.begin; i < at.end; ++i) {
      const double x = double(Wide<T>(g[i]));
      sum += x * x;
    }
    return sum;
  });
}

template <>
template <class T>
void ClipKernels<Cpu>::scale(const ClipItem<T>* items, int64_t count, double factor) {
  const Chunks chunks(items, count);
  const auto f = Wide<T>(factor);
  parallel_for(chunks.size(), 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const Chunks::Chunk at = chunks[c];
      T* g = items[at.item].g;
#pragma omp simd
      for (int64_t i = at.begin; i < at.end; ++i) store(g[i], Wide<T>(g[i]) * f);
    }
  });
}

template <>
template <class T>
void ClipKernels<Cpu>::clip(const ClipItem<T>* items, int64_t count, double max_norm, double largest,
                            double* norm) {
  set_norm(std::sqrt(squares(items, count)), largest, norm);
  if (max_norm > 0 && std::isfinite(*norm) && *norm > max_norm) scale(items, count, max_norm / *norm);
}

TESSERA_FOR_FLOATS(ClipKernels<Cpu>::squares)
TESSERA_FOR_FLOATS(ClipKernels<Cpu>::clip)
TESSERA_FOR_FLOATS(ClipKernels<Cpu>::scale)

}  // namespace tessera
