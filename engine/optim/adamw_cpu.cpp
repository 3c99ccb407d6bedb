#include "engine/core/device.h"
#include "engine/core/parallel.h"
#include "engine/optim/adamw_kernels.h"
#include "engine/optim/chunks.h"

namespace tessera {

template <>
template <class T>
void AdamWKernels<Cpu>::step(const AdamWItem<T>* items, int64_t count, const AdamWRates<T>& rates) {
  if (rates.norm && !std::isfinite(*rates.norm)) return;
  const Chunks chunks(items, count);
  parallel_for(chunks.size(), 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const Chunks::Chunk at = chunks[c];
      const AdamWItem<T> item = items[at.item];
      const AdamWRates<T> r = rates;
#pragma omp simd
      for (int64_t i = at.begin; i < at.end; ++i)
        adamw_update(item.p[i], item.g[i], item.m[i], item.v[i], item, r);
    }
  });
}

template void AdamWKernels<Cpu>::step(const AdamWItem<float>*, int64_t, const AdamWRates<float>&);
template void AdamWKernels<Cpu>::step(const AdamWItem<double>*, int64_t, const AdamWRates<double>&);

}  // namespace tessera
