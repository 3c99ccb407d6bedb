#pragma once

// Sums and maxima over a warp, a block and columns, in a fixed order.

#include "engine/cuda/launch.h"

namespace tessera {

struct Plus {
  template <class W> TESSERA_HD static W identity() { return W(0); }
  template <class W> TESSERA_HD static W of(W a, W b) { return a + b; }
};

struct Larger {  // propagates NaN
  template <class W> TESSERA_HD static W identity() { return -W(INFINITY); }
  template <class W> TESSERA_HD static W of(W a, W b) { return a > b || a != a ? a : b; }
};

// Reduces over the 32 lanes of a warp, all of which must call it. Every lane gets the result.
template <class By, class W> __device__ inline W warp_all(W value) {
#pragma unroll
  for (int step = warp / 2; step > 0; step /= 2)
    value = By::of(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}
template <class W> __device__ inline W warp_sum(W value) { return warp_all<Plus>(value); }
template <class W> __device__ inline W warp_max(W value) { return warp_all<Larger>(value); }

// Reduces over all threads of a one-dimensional block of at most 32 full warps. Every thread gets the result.
template <class By, class W> __device__ inline W block_all(W value) {
  __shared__ W parts[warp];
  const int lane = own_lane(), own = own_warp(), warps = blockDim.x / warp;
  value = warp_all<By>(value);
  __syncthreads();  // the parts of an earlier call have been read
  if (lane == 0) parts[own] = value;
  __syncthreads();
  return warp_all<By>(lane < warps ? parts[lane] : By::template identity<W>());
}
template <class W> __device__ inline W block_sum(W value) { return block_all<Plus>(value); }
template <class W> __device__ inline W block_max(W value) { return block_all<Larger>(value); }

// A sum over partial results, and where it goes.
template <class T> struct PartSum {
  const Wide<T>* parts;  // [count, n]
  T* y;                  // [n], written, or added to
  bool add;
};

namespace part_detail {

inline constexpr int lanes = 16;  // threads that share a sum

// Blocks of (warp, lanes) threads, block x of gridDim.x, add entries [32 x, 32 x + 32) of one sum.
template <class T>
__device__ inline void add_up(int64_t n, int64_t count, Wide<T> factor, const PartSum<T>& sum_of) {
  using W = Wide<T>;
  __shared__ W tile[lanes][warp];
  const auto [parts, y, add] = sum_of;
  for (int64_t left = int64_t{blockIdx.x} * warp; left < n; left += int64_t{gridDim.x} * warp) {
    const int64_t i = left + threadIdx.x;
    W sum = 0;
    if (i < n)
      for (int64_t c = threadIdx.y; c < count; c += lanes) sum += parts[c * n + i];
    tile[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && i < n) {
      for (int lane = 1; lane < lanes; ++lane) sum += tile[lane][threadIdx.x];
      y[i] = T(add ? W(y[i]) + factor * sum : factor * sum);
    }
    __syncthreads();
  }
}

template <class T>
__global__ void __launch_bounds__(warp* lanes) sum(int64_t n, int64_t count, Wide<T> factor, PartSum<T> of) {
  wait_for_previous_kernel();
  add_up(n, count, factor, of);
}

}  // namespace part_detail

// y[i] = factor * (parts[i] + parts[n + i] + ...) over `count` parts in a fixed order, or += if add.
template <class T>
void sum_parts(int64_t n, int64_t count, const Wide<T>* parts, Wide<T> factor, T* y, bool add) {
  if (n == 0) return;
  const int64_t blocks = std::min<int64_t>((n + warp - 1) / warp, 1 << 20);
  launch(part_detail::sum<T>, LaunchGrid{dim3(static_cast<unsigned>(blocks)), dim3(warp, part_detail::lanes)},
         n, count, factor, PartSum<T>{parts, y, add});
}

// --- columns: y[j] = sum over rows of f(row, j) ---

namespace column_detail {

inline constexpr int tile_rows = 8;

// A block of (warp, tile_rows) threads sums columns [32 x, 32 x + 32) over the rows of part y, for block (x,
// y) of the grid. parts [gridDim.y, width]
template <class W, class F>
__global__ void sum(int64_t rows, int64_t width, int64_t rows_a_part, F f, W* parts) {
  wait_for_previous_kernel();
  __shared__ W tile[tile_rows][warp];
  const int64_t end = min(rows, (int64_t{blockIdx.y} + 1) * rows_a_part);
  for (int64_t left = int64_t{blockIdx.x} * warp; left < width; left += int64_t{gridDim.x} * warp) {
    const int64_t j = left + threadIdx.x;
    W sum = 0;
    if (j < width)
      for (int64_t i = blockIdx.y * rows_a_part + threadIdx.y; i < end; i += tile_rows) sum += f(i, j);
    tile[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && j < width) {
      for (int r = 1; r < tile_rows; ++r) sum += tile[r][threadIdx.x];
      parts[blockIdx.y * width + j] = sum;
    }
    __syncthreads();
  }
}

}  // namespace column_detail

// y[j] = factor * (sum over rows i of f(i, j)) for j in [0, width), or += if add, where f returns a Wide<T>.
// f may also write to memory: it is called once for each (i, j). The cut into parts depends on the sizes
// alone.
template <class T, class F>
void column_sums(int64_t rows, int64_t width, const F& f, Wide<T> factor, T* y, bool add) {
  using W = Wide<T>;
  if (width == 0) return;
  constexpr int64_t most_parts = 256, least_rows = 32;
  const int64_t parts = std::clamp<int64_t>((rows + least_rows - 1) / least_rows, 1, most_parts);
  const int64_t rows_a_part = (rows + parts - 1) / parts;
  const Scratch<W> scratch(parts * width);
  const int64_t across = std::min<int64_t>((width + warp - 1) / warp, 65535);
  launch(column_detail::sum<W, F>,
         LaunchGrid{dim3(static_cast<unsigned>(across), static_cast<unsigned>(parts)),
                    dim3(warp, column_detail::tile_rows)},
         rows, width, rows_a_part, f, scratch.data());
  sum_parts(width, parts, scratch.data(), factor, y, add);
}

// y [width] = factor * the sum of the rows of x [rows, width], or += if add.
template <class T, class X>
void sum_of_rows(int64_t rows, int64_t width, const X* x, Wide<X> factor, T* y, bool add) {
  column_sums(
      rows, width, [=] __device__(int64_t i, int64_t j) { return Wide<X>(x[i * width + j]); }, factor, y,
      add);
}

}  // namespace tessera
