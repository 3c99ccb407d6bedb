#include "engine/core/dispatch.h"
#include "engine/cuda/launch.h"
#include "engine/ops/dropout_kernels.h"

namespace tessera {

namespace {

// Four elements a thread and step: philox gives four words at once.
template <class T>
__global__ void drop(int64_t n, float limit, Wide<T> factor, DrawKey key, const T* x, T* y, bool add) {
  using W = Wide<T>;
  const uint64_t drawn_by = key();
  for (int64_t group = grid_thread(); 4 * group < n; group += grid_threads()) {
    const auto words = philox(drawn_by, static_cast<uint64_t>(group));
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int64_t i = 4 * group + k;
      if (i >= n) break;
      const W value = unit_float(words[k]) >= limit ? W(x[i]) * factor : W(0);
      y[i] = T(add ? W(y[i]) + value : value);
    }
  }
}

}  // namespace

template <>
template <class T>
void DropoutKernels<Cuda>::dropout(int64_t n, double p, uint64_t key, const T* x, T* y, bool add) {
  if (n == 0) return;
  launch(drop<T>, grid_for((n + 3) / 4), n, static_cast<float>(p), Wide<T>(1 / (1 - p)), Graph::draw_key(key),
         x, y, add);
}

template <>
template <class T>
void DropoutKernels<Cuda>::drop_path(int64_t images, int64_t width, double p, uint64_t key, const T* x,
                                     const T* f, T* y, bool add) {
  using W = Wide<T>;
  const W factor = W(1 / (1 - p));
  const DrawKey drawn_by = Graph::draw_key(key);
  if (x)
    map(
        images * width, y, add,
        [=] __device__(int64_t i, W a, W b) {
          return path_kept(i / width, p, drawn_by()) ? a + factor * b : a;
        },
        x, f);
  else
    map(
        images * width, y, add,
        [=] __device__(int64_t i, W b) { return path_kept(i / width, p, drawn_by()) ? factor * b : W(0); },
        f);
}

TESSERA_FOR_FLOATS(DropoutKernels<Cuda>::dropout)
TESSERA_FOR_FLOATS(DropoutKernels<Cuda>::drop_path)

}  // namespace tessera
