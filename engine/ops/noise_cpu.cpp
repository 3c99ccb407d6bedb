#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/ops/noise_kernels.h"

namespace tessera {

template <> template <class T> void NoiseKernels<Cpu>::fill(int64_t n, uint64_t key, T* y) {
  parallel_for(n, chunk_length(noise_chunk), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = converted<T>(noise_at(key, i));
  });
}

TESSERA_FOR_FLOATS(NoiseKernels<Cpu>::fill)

}  // namespace tessera
