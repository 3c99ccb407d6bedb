#include "engine/core/dispatch.h"
#include "engine/cuda/rows.h"
#include "engine/ops/norm_kernels.h"

namespace tessera {

template <>
template <class T>
void LayerNormKernels<Cuda>::forward(int64_t rows, int64_t width, const T* x, const T* weight, const T* bias,
                                     double eps, T* y, Wide<T>* mean, Wide<T>* rstd) {
  using W = Wide<T>;
  each_row(rows, [=] __device__(int64_t i, int lane) {
    const T* row = x + i * width;  // in the first cache after the first of the three passes
    const W m = lanes_sum<W>(width, lane, [=](int64_t j) { return W(row[j]); }) / W(width);
    const W squares = lanes_sum<W>(width, lane, [=](int64_t j) {
      const W centred = W(row[j]) - m;
      return centred * centred;
    });
    const W r = 1 / std::sqrt(squares / W(width) + W(eps));
    if (lane == 0) {
      mean[i] = m;
      rstd[i] = r;
    }
    lanes_write(width, lane, y + i * width, false,
                [=](int64_t j) { return (W(row[j]) - m) * r * W(weight[j]) + W(bias[j]); });
  });
}

namespace {

constexpr int warps = block_threads / warp;

// The sums of one part of the rows, for each column: of dy h and of dy. [parts, width] each
template <class W> struct PartialSums { W *dy_h, *dy; };

// parts [width] = the sum of a column's number in each warp, in the order of the warps. own[k]: of this
// lane's column lane + 32 k.
template <class W, int columns> __device__ void sum_warps(const W (&own)[columns], int64_t width, W* parts) {
  __shared__ W tile[warps][warp];
  const int lane = static_cast<int>(threadIdx.x) % warp, row = static_cast<int>(threadIdx.x) / warp;
#pragma unroll
  for (int k = 0; k < columns; ++k) {
    tile[row][lane] = own[k];
    __syncthreads();
    const int64_t j = lane + k * warp;
    if (row == 0 && j < width) {
      W sum = own[k];
      for (int w = 1; w < warps; ++w) sum += tile[w][lane];
      parts[j] = sum;
    }
    __syncthreads();
  }
}

// dx = rstd (g - mean(g) - h mean(g h)), g = dy weight, h = (x - mean) rstd, and the sums that dweight and
// dbias are made of, in one pass: each warp holds a row of at most 32 `columns` numbers. Block: one part.
template <class T, int columns>
__global__ void __launch_bounds__(block_threads)
    backward_part(int64_t rows, int64_t width, int64_t rows_a_part, const T* dy, const T* x, const T* weight,
                  const Wide<T>* mean, const Wide<T>* rstd, T* dx, bool add_dx, PartialSums<Wide<T>> parts) {
  using W = Wide<T>;
  const int lane = static_cast<int>(threadIdx.x) % warp;
  const int64_t end = min(rows, (int64_t{blockIdx.x} + 1) * rows_a_part);
  W dy_h[columns] = {}, dy_sum[columns] = {};
  for (int64_t i = blockIdx.x * rows_a_part + threadIdx.x / warp; i < end; i += warps) {
    const T *dy_row = dy + i * width, *x_row = x + i * width;
    const W m = mean[i], r = rstd[i];
    W g[columns], h[columns], g_sum = 0, gh_sum = 0;
#pragma unroll
    for (int k = 0; k < columns; ++k) {
      const int64_t j = lane + k * warp;
      const W d = j < width ? W(dy_row[j]) : W(0);
      h[k] = j < width ? (W(x_row[j]) - m) * r : W(0);
      g[k] = j < width ? d * W(weight[j]) : W(0);
      g_sum += g[k];
      gh_sum += g[k] * h[k];
      dy_h[k] += d * h[k];
      dy_sum[k] += d;
    }
    if (!dx) continue;
    const W g_mean = warp_sum(g_sum) / W(width), gh_mean = warp_sum(gh_sum) / W(width);
#pragma unroll
    for (int k = 0; k < columns; ++k)
      if (const int64_t j = lane + k * warp; j < width)
        write(dx[i * width + j], add_dx, (g[k] - g_mean - h[k] * gh_mean) * r);
  }
  if (parts.dy_h) sum_warps<W, columns>(dy_h, width, parts.dy_h + blockIdx.x * width);
  if (parts.dy) sum_warps<W, columns>(dy_sum, width, parts.dy + blockIdx.x * width);
}

// The same in a pass for each gradient, for rows of any width.
template <class T>
void wide_input_gradient(int64_t rows, int64_t width, const T* dy, const T* x, const T* weight,
                         const Wide<T>* mean, const Wide<T>* rstd, T* dx, bool add) {
  using W = Wide<T>;
  each_row(rows, [=] __device__(int64_t i, int lane) {
    const T *dy_row = dy + i * width, *x_row = x + i * width;
    const W m = mean[i], r = rstd[i];
    const auto g = [=](int64_t j) { return W(dy_row[j]) * W(weight[j]); };
    const auto h = [=](int64_t j) { return (W(x_row[j]) - m) * r; };
    const W g_mean = lanes_sum<W>(width, lane, g) / W(width);
    const W gh_mean = lanes_sum<W>(width, lane, [=](int64_t j) { return g(j) * h(j); }) / W(width);
    lanes_write(width, lane, dx + i * width, add,
                [=](int64_t j) { return (g(j) - g_mean - h(j) * gh_mean) * r; });
  });
}

template <class T>
void wide_weight_gradient(int64_t rows, int64_t width, const T* dy, const T* x, const Wide<T>* mean,
                          const Wide<T>* rstd, T* dweight, bool add) {
  using W = Wide<T>;
  column_sums(
      rows, width,
      [=] __device__(int64_t i, int64_t j) {
        return W(dy[i * width + j]) * ((W(x[i * width + j]) - mean[i]) * rstd[i]);
      },
      W(1), dweight, add);
}

}  // namespace

template <>
template <class T>
void LayerNormKernels<Cuda>::backward(int64_t rows, int64_t width, const T* dy, const T* x, const T* weight,
                                      const Wide<T>* mean, const Wide<T>* rstd, T* dx, bool add_dx,
                                      T* dweight, bool add_dweight, T* dbias, bool add_dbias) {
  using W = Wide<T>;
  if (width > 32 * warp) {
    if (dx) wide_input_gradient(rows, width, dy, x, weight, mean, rstd, dx, add_dx);
    if (dweight) wide_weight_gradient(rows, width, dy, x, mean, rstd, dweight, add_dweight);
    if (dbias) sum_of_rows(rows, width, dy, W(1), dbias, add_dbias);
    return;
  }
  constexpr int64_t most_parts = 512, least_rows = 4 * warps;
  const int64_t parts = std::clamp<int64_t>((rows + least_rows - 1) / least_rows, 1, most_parts);
  const Scratch<W> dy_h(dweight ? parts * width : 0), dy_sum(dbias ? parts * width : 0);
  const PartialSums<W> sums{dweight ? dy_h.data() : nullptr, dbias ? dy_sum.data() : nullptr};
  const auto run = [&](auto columns) {
    launch(backward_part<T, columns>, LaunchGrid{dim3(static_cast<unsigned>(parts))}, rows, width,
           (rows + parts - 1) / parts, dy, x, weight, mean, rstd, dx, add_dx, sums);
  };
  if (width <= 4 * warp)
    run(std::integral_constant<int, 4>{});
  else if (width <= 8 * warp)
    run(std::integral_constant<int, 8>{});
  else if (width <= 16 * warp)
    run(std::integral_constant<int, 16>{});
  else
    run(std::integral_constant<int, 32>{});
  if (dweight) sum_parts(width, parts, sums.dy_h, W(1), dweight, add_dweight);
  if (dbias) sum_parts(width, parts, sums.dy, W(1), dbias, add_dbias);
}

TESSERA_FOR_FLOATS(LayerNormKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(LayerNormKernels<Cuda>::backward)

}  // namespace tessera
