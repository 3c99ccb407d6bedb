#pragma once

// Work on the rows of a matrix, one warp a row.

#include "engine/cuda/reduce.h"

namespace tessera {

namespace row_detail {

template <class F> __global__ void run(int64_t rows, F f) {
  wait_for_previous_kernel();
  const int lane = own_lane();
  for (int64_t row = grid_thread() / warp; row < rows; row += grid_threads() / warp) f(row, lane);
}

}  // namespace row_detail

// Calls f(row, lane) for every row by the 32 lanes of one warp, which may sum among themselves (warp_sum). F
// is a
// [=] __device__ lambda or a struct.
template <class F> void each_row(int64_t rows, const F& f) {
  if (rows > 0) launch(row_detail::run<F>, grid_for(rows * warp), rows, f);
}

// The sum of f(j) over j in [0, width), by the lanes of a warp. Each lane gets the result.
template <class W, class F> __device__ inline W lanes_sum(int64_t width, int lane, const F& f) {
  W sum = 0;
  for (int64_t j = lane; j < width; j += warp) sum += f(j);
  return warp_sum(sum);
}

// out = value, or += if add.
template <class T> __device__ inline void write(T& out, bool add, Wide<T> value) {
  out = T(add ? Wide<T>(out) + value : value);
}

// out[j] = f(j), or += if add, for j in [0, width), by the lanes of a warp.
template <class T, class F>
__device__ inline void lanes_write(int64_t width, int lane, T* out, bool add, const F& f) {
  for (int64_t j = lane; j < width; j += warp) write(out[j], add, f(j));
}

}  // namespace tessera
