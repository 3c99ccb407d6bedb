#include <cmath>

#include "engine/core/device.h"
#include "engine/core/parallel.h"
#include "engine/optim/chunks.h"
#include "engine/optim/sgd_kernels.h"

namespace tessera {

template <>
template <class T>
void SgdKernels<Cpu>::step(const SgdItem<T>* items, int64_t count, T momentum, bool nesterov,
                           const double* norm) {
  if (norm && !std::isfinite(*norm)) return;
  const Chunks chunks(items, count);
  parallel_for(chunks.size(), 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const Chunks::Chunk at = chunks[c];
      const SgdItem<T> item = items[at.item];
#pragma omp simd
      for (int64_t i = at.begin; i < at.end; ++i) sgd_update(item, i, momentum, nesterov);
    }
  });
}

template void SgdKernels<Cpu>::step(const SgdItem<float>*, int64_t, float, bool, const double*);
template void SgdKernels<Cpu>::step(const SgdItem<double>*, int64_t, double, bool, const double*);

}  // namespace tessera
