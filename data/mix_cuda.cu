// Normalises, erases and mixes a batch on the GPU: the twin of Normalise, RandomErasing and mix_images.

#include "data/augment/erasing_kernels.h"
#include "data/augment/mix_kernels.h"
#include "data/feed_cuda.h"
#include "engine/cuda/launch.h"

namespace tessera {

namespace {

// An image of the batch before it is mixed; with `noise`, erased pixels are noise.
template <bool noise> struct Source {
  const uint8_t* bytes;
  const float* table;
  Erasure erasure;
  ErasingFill fill;
  int width;

  __device__ Source(const PackWork& work, int64_t i)
      : bytes(work.bytes + i * 3 * work.height * work.width),
        table(work.table),
        erasure(work.records[i].erasure),
        fill(work.fill),
        width(work.width) {}

  // The value of channel c of pixel p, which lies at (y, x).
  __device__ float at(int c, int p, int y, int x) const {
    if (!erasure.covers(y, x)) return table[c * 256 + bytes[3 * p + c]];
    if (!noise) return c == 0 ? fill.value[0] : c == 1 ? fill.value[1] : fill.value[2];
    const int rows = erasure.bottom - erasure.top, columns = erasure.right - erasure.left;
    return noise_at(erasure.noise, (c * rows + y - erasure.top) * columns + x - erasure.left);
  }
};

template <bool noise>
__device__ float mixed(const FeedMix& mix, const Source<noise>& own, const Source<noise>& other, int c,
                       int p) {
  const int y = p / own.width, x = p % own.width;
  if (mix.kind == FeedMix::Kind::mixup) return Mixup(mix.lam)(own.at(c, p, y, x), other.at(c, p, y, x));
  const bool cut =
      mix.kind == FeedMix::Kind::cutmix && y >= mix.top && y < mix.bottom && x >= mix.left && x < mix.right;
  return cut ? other.at(c, p, y, x) : own.at(c, p, y, x);
}

// Writes the labels of image i and its share of each class.
template <class T> __device__ void write_labels(const PackWork& work, int64_t i) {
  const FeedTarget& to = work.target;
  const int64_t own = work.records[i].label, other = work.records[work.records[i].partner].label;
  if (threadIdx.x == 0) {
    to.labels[i] = own;
    to.other_labels[i] = other;
  }
  T* shares = static_cast<T*>(to.shares);
  for (int64_t k = threadIdx.x; shares && k < to.classes; k += blockDim.x)
    shares[i * to.classes + k] = T(share_of_class(k, own, other, work.mix.lam));
}

// A block packs a part of one image, V pixels a thread.
template <int V, bool noise, class T> __global__ void pack(PackWork work) {
  wait_for_previous_kernel();
  const int64_t i = blockIdx.x;
  const int area = work.height * work.width;
  const Source<noise> own(work, i), other(work, work.records[i].partner);
  T* images = static_cast<T*>(work.target.images) + i * 3 * area;
  const int p = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * V;
  for (int c = 0; p < area && c < 3; ++c) {
    Pack<T, V> out;
#pragma unroll
    for (int k = 0; k < V; ++k) out.at[k] = T(mixed(work.mix, own, other, c, p + k));
    store_pack<V>(images + c * area + p, out);
  }
  if (blockIdx.y == 0) write_labels<T>(work, i);
}

template <int V, bool noise, class T> void start(const PackWork& work) {
  const int threads = work.height * work.width / V, parts = (threads + block_threads - 1) / block_threads;
  launch(pack<V, noise, T>,
         LaunchGrid{dim3(static_cast<unsigned>(work.images), static_cast<unsigned>(parts))}, work);
}

template <class T> void pack_as(const PackWork& work) {
  constexpr int v = 4;
  const bool packed =
      work.height * work.width % v == 0 && aligned(static_cast<const T*>(work.target.images), v);
  if (work.fill.noise)
    start<1, true, T>(work);
  else if (packed)
    start<v, false, T>(work);
  else
    start<1, false, T>(work);
}

}  // namespace

void pack_batch(const PackWork& work) {
  if (work.target.narrow)
    pack_as<bf16>(work);
  else
    pack_as<float>(work);
}

}  // namespace tessera
