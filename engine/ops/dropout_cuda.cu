#include "engine/core/dispatch.h"
#include "engine/cuda/launch.h"
#include "engine/ops/dropout_kernels.h"

namespace tessera {

namespace {

// Four elements a thread and step: philox gives four words at once.
template <class T>
__global__ void drop(int64_t n, float limit, Wide<T> factor, DrawKey key, const T* x, T* y, bool add) {
  wait_for_previous_kernel();
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

// A row of blocks for an image, which is drawn once a thread; x may be null.
template <int V, class T>
__global__ void drop_images(int64_t images, int64_t width, double p, Wide<T> kept, DrawKey key, const T* x,
                            const T* f, T* y, bool add) {
  wait_for_previous_kernel();
  using W = Wide<T>;
  for (int64_t image = blockIdx.y; image < images; image += gridDim.y) {
    const bool keeps = path_kept(image, p, key());
    for (int64_t j = grid_thread() * V; j < width; j += grid_threads() * V) {
      const int64_t at = image * width + j;
      const auto branch = load_pack<V>(f + at), trunk = x ? load_pack<V>(x + at) : branch;
      auto out = branch;
      if (add) out = load_pack<V>(y + at);
#pragma unroll
      for (int k = 0; k < V; ++k) {
        W value = x ? W(trunk.at[k]) : W(0);
        if (keeps) value += kept * W(branch.at[k]);
        out.at[k] = T(add ? W(out.at[k]) + value : value);
      }
      store_pack<V>(y + at, out);
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
  if (images * width == 0) return;
  constexpr int v = pack_of<T>;
  const bool packed = width % v == 0 && aligned(f, v) && aligned(y, v) && (!x || aligned(x, v));
  const int64_t across = (width / (packed ? v : 1) + block_threads - 1) / block_threads;
  const LaunchGrid grid{dim3(static_cast<unsigned>(std::clamp<int64_t>(across, 1, 1024)),
                             static_cast<unsigned>(std::min<int64_t>(images, 65535)))};
  const DrawKey drawn = p > 0 ? Graph::draw_key(key) : DrawKey{};  // the plain residual has no key
  launch(packed ? drop_images<v, T> : drop_images<1, T>, grid, images, width, p, Wide<T>(1 / (1 - p)), drawn,
         x, f, y, add);
}

TESSERA_FOR_FLOATS(DropoutKernels<Cuda>::dropout)
TESSERA_FOR_FLOATS(DropoutKernels<Cuda>::drop_path)

}  // namespace tessera
