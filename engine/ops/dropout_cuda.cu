#include "engine/core/dispatch.h"
#include "engine/cuda/launch.h"
#include "engine/ops/dropout_kernels.h"

namespace tessera {

namespace {

// A thread handles four elements at a step, because Philox gives four words at once.
template <class T>
__global__ void drop(int64_t n, float limit, Wide<T> factor, DrawKey key, const T* x, Target<T> y) {
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
      y.data[i] = T(y.add ? W(y.data[i]) + value : value);
    }
  }
}

// A row of blocks handles an image; each thread draws its m once. x may be null.
template <int V, class T>
__global__ void drop_images(RowsSize size, double p, Wide<T> kept, DrawKey key, const T* x, const T* f,
                            Target<T> y) {
  wait_for_previous_kernel();
  using W = Wide<T>;
  const int64_t images = size.rows, width = size.width;
  for (int64_t image = blockIdx.y; image < images; image += gridDim.y) {
    const bool keeps = path_kept(image, p, key());
    for (int64_t j = grid_thread() * V; j < width; j += grid_threads() * V) {
      const int64_t at = image * width + j;
      const auto branch = load_pack<V>(f + at), trunk = x ? load_pack<V>(x + at) : branch;
      auto out = branch;
      if (y.add) out = load_pack<V>(y.data + at);
#pragma unroll
      for (int k = 0; k < V; ++k) {
        W value = x ? W(trunk.at[k]) : W(0);
        if (keeps) value += kept * W(branch.at[k]);
        out.at[k] = T(y.add ? W(out.at[k]) + value : value);
      }
      store_pack<V>(y.data + at, out);
    }
  }
}

}  // namespace

template <>
template <class T>
void DropoutKernels<Cuda>::dropout(int64_t n, double p, uint64_t key, const T* x, Target<T> y) {
  if (n == 0) return;
  launch(drop<T>, grid_for((n + 3) / 4), n, static_cast<float>(p), Wide<T>(1 / (1 - p)), Graph::draw_key(key),
         x, y);
}

template <>
template <class T>
void DropoutKernels<Cuda>::drop_path(RowsSize size, double p, uint64_t key, const T* x, const T* f,
                                     Target<T> y) {
  const int64_t images = size.rows, width = size.width;
  if (images * width == 0) return;
  constexpr int v = pack_of<T>;
  const bool packed = width % v == 0 && aligned(f, v) && aligned(y.data, v) && (!x || aligned(x, v));
  const int64_t across = (width / (packed ? v : 1) + block_threads - 1) / block_threads;
  const LaunchGrid grid{dim3(static_cast<unsigned>(std::clamp<int64_t>(across, 1, 1024)),
                             static_cast<unsigned>(std::min<int64_t>(images, 65535)))};
  const DrawKey drawn = p > 0 ? Graph::draw_key(key) : DrawKey{};  // the plain residual has no key
  launch(packed ? drop_images<v, T> : drop_images<1, T>, grid, size, p, Wide<T>(1 / (1 - p)), drawn, x, f, y);
}

TESSERA_FOR_FLOATS(DropoutKernels<Cuda>::dropout)
TESSERA_FOR_FLOATS(DropoutKernels<Cuda>::drop_path)

}  // namespace tessera
