#include "engine/core/dispatch.h"
#include "engine/cuda/reduce.h"
#include "engine/ops/reduce_kernels.h"

namespace tessera {

namespace {

constexpr int64_t part_elements = 1 << 13;  // a sum is cut into parts of at least so many elements
constexpr int64_t most_parts = 128;
constexpr int64_t most_blocks_z = 65535;

// parts [gridDim.y, outputs]: block (x, y) sums part y of outputs x, x + gridDim.x, ..., `Threads` threads
// for one of them. The summed part of an output has `length` elements, its last axis `width`.
template <int Threads, class T>
__global__ void sum_rows(Fold fold, int64_t outputs, int64_t length, int64_t part, const T* x,
                         Wide<T>* parts) {
  wait_for_previous_kernel();
  using W = Wide<T>;
  constexpr int side_by_side = block_threads / Threads;
  const int thread = threadIdx.x % Threads, slot = threadIdx.x / Threads;
  const int64_t begin = blockIdx.y * part, end = min(length, begin + part);
  for (int64_t first = int64_t{blockIdx.x} * side_by_side; first < outputs;
       first += int64_t{gridDim.x} * side_by_side) {  // the same for the whole block
    const int64_t o = first + slot;
    W sum = 0;
    if (o < outputs) {
      const T* from = x + fold.kept.at(o, fold.kept.rank)[0];
      for (int64_t i = begin + thread; i < end; i += Threads) {
        const int64_t row = fold.summed.rank == 0 ? 0 : i / fold.width;
        sum += W(from[fold.summed.at(row, fold.summed.rank)[0] + i - row * fold.width]);
      }
    }
    sum = Threads == warp ? warp_sum(sum) : block_sum(sum);
    if (thread == 0 && o < outputs) parts[blockIdx.y * outputs + o] = sum;
  }
}

// sum_rows for a fold that keeps the last axis: block (warp, 8) sums columns; blockIdx.z counts the other
// kept entries.
template <class T>
__global__ void sum_columns(Fold fold, int64_t outer, int64_t rows, int64_t part, const T* x,
                            Wide<T>* parts) {
  wait_for_previous_kernel();
  using W = Wide<T>;
  __shared__ W tile[8][warp];
  const int64_t begin = blockIdx.y * part, end = min(rows, begin + part);
  const int64_t across = (fold.width + warp - 1) / warp;
  for (int64_t o = blockIdx.z; o < outer; o += gridDim.z)
    for (int64_t column = blockIdx.x; column < across; column += gridDim.x) {
      const int64_t j = column * warp + threadIdx.x;
      const T* from = x + fold.kept.at(o, fold.kept.rank)[0] + j;
      W sum = 0;
      if (j < fold.width)
        for (int64_t i = begin + threadIdx.y; i < end; i += 8)
          sum += W(from[fold.summed.at(i, fold.summed.rank)[0]]);
      tile[threadIdx.y][threadIdx.x] = sum;
      __syncthreads();
      if (threadIdx.y == 0 && j < fold.width) {
        for (int r = 1; r < 8; ++r) sum += tile[r][threadIdx.x];
        parts[(blockIdx.y * outer + o) * fold.width + j] = sum;
      }
      __syncthreads();
    }
}

unsigned blocks(int64_t n, int64_t most = most_blocks_z) {
  return static_cast<unsigned>(std::clamp<int64_t>(n, 1, most));
}

// The number of parts that each of `outputs` sums of `length` elements is cut into. The sizes alone fix it.
int64_t parts_of(int64_t length, int64_t outputs, int64_t least) {
  if (outputs > 1 << 10) return 1;
  return std::clamp<int64_t>(length / least, 1, most_parts);
}

template <class T>
__global__ void largest(int64_t outer, int64_t count, int64_t inner, const T* x, T* y, int64_t* at) {
  wait_for_previous_kernel();
  for (int64_t o = grid_thread(); o < outer * inner; o += grid_threads()) {
    const T* from = x + o / inner * count * inner + o % inner;
    Wide<T> best = Wide<T>(*from);
    int64_t where = 0;
    for (int64_t i = 1; i < count; ++i) {
      const Wide<T> value = Wide<T>(from[i * inner]);
      if (value <= best || best != best) continue;  // a NaN is the maximum, and remains it
      best = value;
      where = i;
    }
    y[o] = from[where * inner];
    at[o] = where;
  }
}

}  // namespace

template <>
template <class T>
void ReduceKernels<Cuda>::sum(const Fold& fold, double factor, const T* x, Target<T> y) {
  using W = Wide<T>;
  const int64_t outer = fold.kept.elements(fold.kept.rank), outputs = fold.outputs(),
                rows = fold.summed.elements(fold.summed.rank);
  if (outputs == 0) return;
  if (fold.width_kept) {
    const int64_t parts = parts_of(rows, outputs / 32, 64), part = (rows + parts - 1) / parts;
    const Scratch<W> scratch(parts * outputs);
    launch(
        sum_columns<T>,
        LaunchGrid{dim3(blocks((fold.width + warp - 1) / warp), blocks(parts), blocks(outer)), dim3(warp, 8)},
        fold, outer, rows, part, x, scratch.data());
    return sum_parts(outputs, parts, scratch.data(), W(factor), y.data, y.add);
  }
  const int64_t length = rows * fold.width, parts = parts_of(length, outputs, part_elements),
                part = (length + parts - 1) / parts;
  const Scratch<W> scratch(parts * outputs);
  const auto start = [&](auto* kernel, int64_t side_by_side) {
    launch(kernel,
           LaunchGrid{dim3(blocks((outputs + side_by_side - 1) / side_by_side, 1 << 20), blocks(parts))},
           fold, outputs, length, part, x, scratch.data());
  };
  if (part <= 1024)
    start(sum_rows<warp, T>, block_threads / warp);
  else
    start(sum_rows<block_threads, T>, 1);
  sum_parts(outputs, parts, scratch.data(), W(factor), y.data, y.add);
}

template <> template <class T> void MaxKernels<Cuda>::forward(AxisSize size, const T* x, T* y, int64_t* at) {
  const int64_t outer = size.outer, count = size.count, inner = size.inner;
  if (outer * inner > 0) launch(largest<T>, grid_for(outer * inner), outer, count, inner, x, y, at);
}

template <>
template <class T>
void MaxKernels<Cuda>::backward(AxisSize size, const T* dy, const int64_t* at, Target<T> dx) {
  const int64_t outer = size.outer, count = size.count, inner = size.inner;
  using W = Wide<T>;
  map(outer * count * inner, dx.data, dx.add, [=] __device__(int64_t k) {
    const int64_t place = k / (count * inner) * inner + k % inner;
    return at[place] == k / inner % count ? W(dy[place]) : W(0);
  });
}

TESSERA_FOR_FLOATS(ReduceKernels<Cuda>::sum)
TESSERA_FOR_FLOATS(MaxKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(MaxKernels<Cuda>::backward)

}  // namespace tessera
