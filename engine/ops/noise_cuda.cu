#include "engine/core/dispatch.h"
#include "engine/cuda/launch.h"
#include "engine/ops/noise_kernels.h"

namespace tessera {

namespace {

template <class T> __global__ void fill_noise(int64_t n, DrawKey key, T* y) {
  wait_for_previous_kernel();
  const uint64_t drawn_by = key();
  for (int64_t i = grid_thread(); i < n; i += grid_threads()) y[i] = converted<T>(noise_at(drawn_by, i));
}

}  // namespace

template <> template <class T> void NoiseKernels<Cuda>::fill(int64_t n, uint64_t key, T* y) {
  if (n > 0) launch(fill_noise<T>, grid_for(n), n, Graph::draw_key(key), y);
}

TESSERA_FOR_FLOATS(NoiseKernels<Cuda>::fill)

}  // namespace tessera
