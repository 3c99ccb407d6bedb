#include <cmath>

#include "engine/core/device.h"
#include "engine/core/parallel.h"
#include "engine/optim/chunks.h"
#include "engine/optim/ema_kernels.h"

namespace tessera {

template <>
template <class T>
void EmaKernels<Cpu>::update(const EmaItem<T>* items, int64_t count, T rest, const double* norm) {
  if (norm && !std::isfinite(*norm)) return;
  const Chunks chunks(items, count);
  parallel_for(chunks.size(), 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const Chunks::Chunk at = chunks[c];
      const EmaItem<T> item = items[at.item];
#pragma omp simd
      for (int64_t i = at.begin; i < at.end; ++i) item.e[i] += rest * (item.p[i] - item.e[i]);
    }
  });
}

template void EmaKernels<Cpu>::update(const EmaItem<float>*, int64_t, float, const double*);
template void EmaKernels<Cpu>::update(const EmaItem<double>*, int64_t, double, const double*);

}  // namespace tessera
