#include "engine/core/device.h"
#include "engine/core/parallel.h"
#include "engine/optim/chunks.h"
#include "engine/optim/sgd_kernels.h"

namespace tessera {

template <>
template <class T>
void SgdKernels<Cpu>::step(const SgdItem<T>* items, int64_t count, T momentum, bool nesterov) {
  const Chunks chunks(items, count);
  parallel_for(chunks.size(), 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const Chunks::Chunk at = chunks[c];
      const SgdItem<T> item = items[at.item];
      const T mu = momentum, ahead = nesterov ? T(1) : T(0);
      if (!item.b) {
#pragma omp simd
        for (int64_t i = at.begin; i < at.end; ++i)
          item.p[i] -= item.rate * (item.g[i] + item.lambda * item.p[i]);
        continue;
      }
#pragma omp simd
      for (int64_t i = at.begin; i < at.end; ++i) {
        const T d = item.g[i] + item.lambda * item.p[i], b = mu * item.b[i] + d;
        item.b[i] = b;
        item.p[i] -= item.rate * (ahead != 0 ? d + mu * b : b);
      }
    }
  });
}

template void SgdKernels<Cpu>::step(const SgdItem<float>*, int64_t, float, bool);
template void SgdKernels<Cpu>::step(const SgdItem<double>*, int64_t, double, bool);

}  // namespace tessera
