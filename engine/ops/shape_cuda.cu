#include "engine/core/device_backend.h"
#include "engine/core/dispatch.h"
#include "engine/cuda/reduce.h"
#include "engine/cuda/walk.h"
#include "engine/ops/shape_kernels.h"

namespace tessera {

namespace {

// A warp for each row of dx: it searches the index 32 entries at a time and adds the rows of dy that belong
// to it, in the order of the index.
template <class T>
__global__ void gather_rows(GatherSize size, const int64_t* index, const T* dy, Target<T> dx) {
  wait_for_previous_kernel();
  const int64_t rows = size.table_rows, count = size.count, width = size.width;
  const int lane = own_lane();
  for (int64_t r = grid_thread() / warp; r < rows; r += grid_threads() / warp)
    for (int64_t left = 0; left < width; left += warp) {
      const int64_t j = left + lane;
      Wide<T> sum = 0;
      for (int64_t first = 0; first < count; first += warp) {
        const bool own = first + lane < count && index[first + lane] == r;
        for (unsigned found = __ballot_sync(0xffffffffu, own); found != 0; found &= found - 1) {
          const int64_t i = first + __ffs(static_cast<int>(found)) - 1;
          if (j < width) sum += Wide<T>(dy[i * width + j]);
        }
      }
      if (j >= width) continue;
      T& to = dx.data[r * width + j];
      to = T(dx.add ? Wide<T>(to) + sum : sum);
    }
}

template <class T>
__global__ void take_rows(int64_t count, int64_t width, const int64_t* index, const T* x, T* y) {
  wait_for_previous_kernel();
  for (int64_t k = grid_thread(); k < count * width; k += grid_threads()) {
    const int64_t i = k / width;
    y[k] = x[index[i] * width + k - i * width];
  }
}

// One block.
__global__ void find_outside(int64_t count, int64_t limit, const int64_t* index, int64_t* found) {
  wait_for_previous_kernel();
  int64_t first = count;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
    if (index[i] < 0 || index[i] >= limit) {
      first = i;
      break;
    }
  __shared__ int64_t least[block_threads];
  least[threadIdx.x] = first;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned t = 1; t < blockDim.x; ++t) first = min(first, least[t]);
  *found = first < count ? first : -1;
}

}  // namespace

template <>
template <class T>
void CopyKernels<Cuda>::copy(const Walk<2>& walk, double factor, const T* x, Target<T> y) {
  using W = Wide<T>;
  walk_map(
      walk, y.data, y.add, [c = W(factor)] __device__(W value) { return c * value; }, x);
}

template <> template <class T> void CopyKernels<Cuda>::zero(int64_t n, T* y) {
  backend(Device::cuda).zero(y, static_cast<size_t>(n) * sizeof(T));
}

template <>
template <class T>
void GatherKernels<Cuda>::forward(GatherSize size, const int64_t* index, const T* x, T* y) {
  const int64_t count = size.count, width = size.width;
  if (count * width > 0) launch(take_rows<T>, grid_for(count * width), count, width, index, x, y);
}

template <>
template <class T>
void GatherKernels<Cuda>::backward(GatherSize size, const int64_t* index, const T* dy, Target<T> dx) {
  const int64_t rows = size.table_rows, count = size.count, width = size.width;
  if (rows * width > 0) launch(gather_rows<T>, grid_for(rows * warp), size, index, dy, dx);
}

template <> int64_t IndexKernels<Cuda>::first_outside(int64_t count, int64_t limit, const int64_t* index) {
  if (count == 0 || Graph::capturing()) return -1;
  const Scratch<int64_t> found(1);
  launch(find_outside, LaunchGrid{dim3(1)}, count, limit, index, found.data());
  int64_t first = -1;
  backend(Device::cuda).copy_to_host(&first, found.data(), sizeof first);
  return first;
}

TESSERA_FOR_FLOATS(CopyKernels<Cuda>::copy)
TESSERA_FOR_FLOATS(CopyKernels<Cuda>::zero)
TESSERA_FOR_FLOATS(GatherKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(GatherKernels<Cuda>::backward)

}  // namespace tessera
