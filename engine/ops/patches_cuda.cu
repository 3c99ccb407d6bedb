#include "engine/core/dispatch.h"
#include "engine/cuda/index.h"
#include "engine/cuda/launch.h"
#include "engine/ops/patches_kernels.h"

namespace tessera {

template <>
template <class T>
void ShiftKernels<Cuda>::forward(const ImageSize& size, const Shifts& shifts, const T* x, T* y) {
  using W = Wide<T>;
  const int64_t n = size.images * shifts.count * size.channels * size.height * size.width;
  map(n, y, false, [=] __device__(int64_t at) {
    const int64_t j = split_off(at, size.width), i = split_off(at, size.height);
    const int64_t c = split_off(at, size.channels), d = split_off(at, shifts.count);
    const int64_t from_i = i + shifts.down(d), from_j = j + shifts.right(d);
    if (!size.has(from_i, from_j)) return W(0);
    return W(x[((at * size.channels + c) * size.height + from_i) * size.width + from_j]);
  });
}

template <>
template <class T>
void ShiftKernels<Cuda>::backward(const ImageSize& size, const Shifts& shifts, const T* dy, Target<T> dx) {
  using W = Wide<T>;
  map(size.images * size.channels * size.height * size.width, dx.data, dx.add, [=] __device__(int64_t at) {
    const int64_t j = split_off(at, size.width), i = split_off(at, size.height);
    const int64_t c = split_off(at, size.channels);
    W sum = 0;
    for (int d = 0; d < shifts.count; ++d) {
      const int64_t from_i = i - shifts.down(d), from_j = j - shifts.right(d);
      const int64_t plane = (at * shifts.count + d) * size.channels + c;
      if (size.has(from_i, from_j)) sum += W(dy[(plane * size.height + from_i) * size.width + from_j]);
    }
    return sum;
  });
}

TESSERA_FOR_FLOATS(ShiftKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(ShiftKernels<Cuda>::backward)

namespace {

// A thread copies V neighbouring pixels of a row of a patch. It reads them one by one, because a shift may
// misalign them, and writes them at once.
template <int V, class T>
__global__ void gather_patches(int64_t packs, PatchPlaces places, Shifts shifts, const T* x, T* y) {
  wait_for_previous_kernel();
  const ImageSize& image = places.image;
  for (int64_t pack = grid_thread(); pack < packs; pack += grid_threads()) {
    int64_t at = pack;
    const int64_t q = split_off(at, places.size / V) * V, p = split_off(at, places.size);
    const int64_t c = split_off(at, image.channels), d = split_off(at, places.copies);
    const int64_t v = split_off(at, places.wide), u = split_off(at, places.high);
    const int64_t i = u * places.size + p + shifts.down(d), j = v * places.size + q + shifts.right(d);
    const T* line = x + ((at * image.channels + c) * image.height + i) * image.width;
    Pack<T, V> out;
#pragma unroll
    for (int k = 0; k < V; ++k) out.at[k] = image.has(i, j + k) ? line[j + k] : T(0.0f);
    store_pack<V>(y + pack * V, out);
  }
}

template <int V, class T> void gather_by(const PatchPlaces& places, const Shifts& shifts, const T* x, T* y) {
  if constexpr (V > 1)
    if (places.size % V != 0 || !aligned(y, V)) return gather_by<V / 2>(places, shifts, x, y);
  const ImageSize& image = places.image;
  const int64_t packs = image.images * image.channels * image.height * image.width * places.copies / V;
  if (packs > 0) launch(gather_patches<V, T>, grid_for(packs), packs, places, shifts, x, y);
}

}  // namespace

template <>
template <class T>
void ShiftedPatchKernels<Cuda>::forward(const PatchPlaces& places, const Shifts& shifts, const T* x, T* y) {
  gather_by<pack_of<T>>(places, shifts, x, y);
}

template <>
template <class T>
void ShiftedPatchKernels<Cuda>::backward(const PatchPlaces& places, const Shifts& shifts, const T* dy,
                                         Target<T> dx) {
  const ImageSize size = places.image;
  map(size.images * size.channels * size.height * size.width, dx.data, dx.add, [=] __device__(int64_t at) {
    const int64_t j = split_off(at, size.width), i = split_off(at, size.height);
    const int64_t c = split_off(at, size.channels);
    return sum_of_copies(places, shifts, at, c, i, j, dy);
  });
}

TESSERA_FOR_FLOATS(ShiftedPatchKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(ShiftedPatchKernels<Cuda>::backward)

}  // namespace tessera
