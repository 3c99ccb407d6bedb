#include "engine/core/dispatch.h"
#include "engine/cuda/rows.h"
#include "engine/cuda/special.h"
#include "engine/ops/norm_kernels.h"

namespace tessera {

namespace {

constexpr int warps = block_threads / warp;

// Neighbouring elements that a lane loads at once: 4 bytes, so that a warp loads 128.
template <class T> inline constexpr int neighbours = sizeof(T) < 4 ? 4 / static_cast<int>(sizeof(T)) : 1;

// The `count` elements that a lane holds of a row of at most 32 count elements (exactly so many if `full`):
// element e is column (e / V * 32 + lane) V + e % V of the row, or zero beyond its width.
template <int V, int count, bool full> struct HeldRow {
  static_assert(count % V == 0);

  __device__ static int column(int e, int lane) { return (e / V * warp + lane) * V + e % V; }
  __device__ static bool has(int e, int lane, int64_t width) { return full || column(e, lane) < width; }

  // Calls f(e, element) for all of them.
  template <class T, class F> __device__ static void read(const T* row, int64_t width, int lane, const F& f) {
#pragma unroll
    for (int e = 0; e < count; e += V) {
      const bool there = has(e, lane, width);
      Pack<T, V> pack;
      if (there) pack = load_pack<V>(row + column(e, lane));
#pragma unroll
      for (int v = 0; v < V; ++v) f(e + v, there ? Wide<T>(pack.at[v]) : Wide<T>(0));
    }
  }

  // row[column of e] = f(e) or, with `add`, += f(e).
  template <class T, class F>
  __device__ static void write(T* row, int64_t width, int lane, bool add, const F& f) {
#pragma unroll
    for (int e = 0; e < count; e += V) {
      if (!has(e, lane, width)) continue;
      T* const place = row + column(e, lane);
      Pack<T, V> pack;
      if (add) pack = load_pack<V>(place);
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const Wide<T> value = f(e + v);
        pack.at[v] = T(add ? Wide<T>(pack.at[v]) + value : value);
      }
      store_pack<V>(place, pack);
    }
  }
};

// y = h weight + bias, h = (x - mean) rstd. A warp reads a row once and holds it in registers.
template <class T, int V, int count, bool full>
__global__ void __launch_bounds__(block_threads)
    forward_held(RowsSize size, const T* x, const T* weight, const T* bias, Wide<T> eps, T* y, Wide<T>* mean,
                 Wide<T>* rstd) {
  wait_for_previous_kernel();
  const int64_t rows = size.rows, width = size.width;
  using W = Wide<T>;
  using Row = HeldRow<V, count, full>;
  const int lane = own_lane();
  const W share = W(1) / W(width);
  W w[count], b[count], held[count];
  Row::read(weight, width, lane, [&](int e, W value) { w[e] = value; });
  Row::read(bias, width, lane, [&](int e, W value) { b[e] = value; });
  for (int64_t i = grid_thread() / warp; i < rows; i += grid_threads() / warp) {
    W sum = 0, squares = 0;
    Row::read(x + i * width, width, lane, [&](int e, W value) { held[e] = value; });
    const W first = __shfl_sync(0xffffffffu, held[0], 0);  // see norm_cpu.cpp
#pragma unroll
    for (int e = 0; e < count; ++e) sum += Row::has(e, lane, width) ? held[e] - first : W(0);
    const W m = first + warp_sum(sum) * share;
#pragma unroll
    for (int e = 0; e < count; ++e) {
      held[e] -= m;
      squares += Row::has(e, lane, width) ? held[e] * held[e] : W(0);
    }
    const W r = fast_rsqrt(warp_sum(squares) * share + eps);
    if (lane == 0) {
      mean[i] = m;
      rstd[i] = r;
    }
    Row::write(y + i * width, width, lane, false, [&](int e) { return held[e] * r * w[e] + b[e]; });
  }
}

// The forward pass for rows of any width.
template <class T>
void wide_forward(RowsSize size, const T* x, const T* weight, const T* bias, double eps, T* y, Wide<T>* mean,
                  Wide<T>* rstd) {
  const int64_t rows = size.rows, width = size.width;
  using W = Wide<T>;
  each_row(rows, [=] __device__(int64_t i, int lane) {
    const T* row = x + i * width;  // the first of three passes leaves it in the first cache
    const W first = W(row[0]);
    const W m = first + lanes_sum<W>(width, lane, [=](int64_t j) { return W(row[j]) - first; }) / W(width);
    const W squares = lanes_sum<W>(width, lane, [=](int64_t j) {
      const W centred = W(row[j]) - m;
      return centred * centred;
    });
    const W r = fast_rsqrt(squares / W(width) + W(eps));
    if (lane == 0) {
      mean[i] = m;
      rstd[i] = r;
    }
    lanes_write(width, lane, y + i * width, false,
                [=](int64_t j) { return (W(row[j]) - m) * r * W(weight[j]) + W(bias[j]); });
  });
}

// Calls f.operator()<V, count, full>() with the least count for which a warp holds a row, loading
// neighbouring elements together where alignment allows. Returns false if the row is too wide.
template <class T, class F> bool with_held(int64_t width, bool paired, const F& f) {
  constexpr int v = neighbours<T>;
  const auto fits = [&]<int count>(std::integral_constant<int, count>) {
    if (width > count * warp) return false;
    if (!paired)
      f.template operator()<1, count, false>();
    else if (width < count * warp)
      f.template operator()<v, count, false>();
    else
      f.template operator()<v, count, true>();
    return true;
  };
  const auto any = [&]<int... counts>(std::integer_sequence<int, counts...>) {
    return (fits(std::integral_constant<int, counts>{}) || ...);
  };
  return any(std::integer_sequence<int, 4, 6, 8, 12, 16, 24, 32>{});
}

}  // namespace

template <>
template <class T>
void LayerNormKernels<Cuda>::forward(RowsSize size, const T* x, const T* weight, const T* bias, double eps,
                                     T* y, Wide<T>* mean, Wide<T>* rstd) {
  const int64_t rows = size.rows, width = size.width;
  constexpr int v = neighbours<T>;
  const auto fits = [&](const T* p) { return aligned(p, v); };
  const bool paired = width % v == 0 && fits(x) && fits(weight) && fits(bias) && fits(y);
  if (rows == 0) return;
  const bool held = with_held<T>(width, paired, [&]<int V, int count, bool full>() {
    launch(forward_held<T, V, count, full>, grid_for(rows * warp), size, x, weight, bias, Wide<T>(eps), y,
           mean, rstd);
  });
  if (!held) wide_forward(size, x, weight, bias, eps, y, mean, rstd);
}

namespace {

// The sums of dy h and of dy over one part of the rows, for each column. [parts, width] each
template <class W> struct PartialSums { W *dy_h, *dy; };

// What the backward pass reads; see norm_kernels.h.
template <class T> struct BackwardInputs {
  const T *dy, *x, *weight;
  const Wide<T>*mean, *rstd;
};

// parts [width] = the sum over the warps of what each holds of a column, in their order; `own` is laid out as
// HeldRow.
template <class Row, class W, int count>
__device__ void sum_warps(const W (&own)[count], int64_t width, W* parts) {
  constexpr int at_once = std::min(count, 64 / static_cast<int>(sizeof(W)));  // in 16 KB
  __shared__ W tile[warps][at_once * warp];
#pragma unroll
  for (int first = 0; first < count; first += at_once) {
    __syncthreads();  // the tile's earlier content has been read
#pragma unroll
    for (int e = first; e < std::min(count, first + at_once); ++e)
      tile[own_warp()][(e - first) * warp + own_lane()] = own[e];
    __syncthreads();
    for (int k = static_cast<int>(threadIdx.x); k < at_once * warp; k += block_threads) {
      const int e = first + k / warp, lane = k % warp;
      if (e >= count || !Row::has(e, lane, width)) continue;
      W sum = tile[0][k];
#pragma unroll
      for (int w = 1; w < warps; ++w) sum += tile[w][k];
      parts[Row::column(e, lane)] = sum;
    }
  }
}

// dx = rstd (g - mean(g) - h mean(g h)), g = dy weight, h = (x - mean) rstd, and the partial sums of dweight
// and dbias, in one pass over memory: each warp holds a row. One block for each part of the rows.
template <class T, int V, int count, bool full>
__global__ void __launch_bounds__(block_threads)
    backward_part(RowsSize size, BackwardInputs<T> in, Target<T> dx, int64_t rows_a_part,
                  PartialSums<Wide<T>> parts) {
  wait_for_previous_kernel();
  const int64_t rows = size.rows, width = size.width;
  using W = Wide<T>;
  using Row = HeldRow<V, count, full>;
  const int lane = own_lane();
  const W share = W(1) / W(width);
  const int64_t end = min(rows, (int64_t{blockIdx.x} + 1) * rows_a_part);
  W w[count], dy_h[count] = {}, dy_sum[count] = {};
  Row::read(in.weight, width, lane, [&](int e, W value) { w[e] = value; });
  for (int64_t i = blockIdx.x * rows_a_part + own_warp(); i < end; i += warps) {
    const W m = in.mean[i], r = in.rstd[i];
    W g[count], h[count], g_sum = 0, gh_sum = 0;
    Row::read(in.dy + i * width, width, lane, [&](int e, W value) { g[e] = value; });
    Row::read(in.x + i * width, width, lane, [&](int e, W value) { h[e] = value; });
#pragma unroll
    for (int e = 0; e < count; ++e) {
      h[e] = Row::has(e, lane, width) ? (h[e] - m) * r : W(0);
      dy_h[e] += g[e] * h[e];
      dy_sum[e] += g[e];
      g[e] *= w[e];
      g_sum += g[e];
      gh_sum += g[e] * h[e];
    }
    if (!dx.data) continue;
    const W g_mean = warp_sum(g_sum) * share, gh_mean = warp_sum(gh_sum) * share;
    Row::write(dx.data + i * width, width, lane, dx.add,
               [&](int e) { return (g[e] - g_mean - h[e] * gh_mean) * r; });
  }
  if (parts.dy_h) sum_warps<Row>(dy_h, width, parts.dy_h + blockIdx.x * width);
  if (parts.dy) sum_warps<Row>(dy_sum, width, parts.dy + blockIdx.x * width);
}

// dx, and below dweight, for rows of any width.
template <class T> void wide_input_gradient(RowsSize size, const BackwardInputs<T>& in, Target<T> dx) {
  using W = Wide<T>;
  const int64_t width = size.width;
  each_row(size.rows, [=] __device__(int64_t i, int lane) {
    const T *dy_row = in.dy + i * width, *x_row = in.x + i * width, *weight = in.weight;
    const W m = in.mean[i], r = in.rstd[i];
    const auto g = [=](int64_t j) { return W(dy_row[j]) * W(weight[j]); };
    const auto h = [=](int64_t j) { return (W(x_row[j]) - m) * r; };
    const W g_mean = lanes_sum<W>(width, lane, g) / W(width);
    const W gh_mean = lanes_sum<W>(width, lane, [=](int64_t j) { return g(j) * h(j); }) / W(width);
    lanes_write(width, lane, dx.data + i * width, dx.add,
                [=](int64_t j) { return (g(j) - g_mean - h(j) * gh_mean) * r; });
  });
}

template <class T> void wide_weight_gradient(RowsSize size, const BackwardInputs<T>& in, Target<T> dweight) {
  using W = Wide<T>;
  const int64_t width = size.width;
  column_sums(
      size.rows, width,
      [=] __device__(int64_t i, int64_t j) {
        return W(in.dy[i * width + j]) * ((W(in.x[i * width + j]) - in.mean[i]) * in.rstd[i]);
      },
      W(1), dweight.data, dweight.add);
}

}  // namespace

template <>
template <class T>
void LayerNormKernels<Cuda>::backward(RowsSize size, const T* dy, const T* x, const T* weight,
                                      const Wide<T>* mean, const Wide<T>* rstd,
                                      const LayerGradients<T>& gradients) {
  using W = Wide<T>;
  const int64_t rows = size.rows, width = size.width;
  const auto& [dx, dweight, dbias] = gradients;
  const BackwardInputs<T> in{dy, x, weight, mean, rstd};
  if (width > 32 * warp) {
    if (dx) wide_input_gradient(size, in, dx);
    if (dweight) wide_weight_gradient(size, in, dweight);
    if (dbias) sum_of_rows(rows, width, dy, W(1), dbias.data, dbias.add);
    return;
  }
  constexpr int64_t most_parts = 512, least_rows = 4 * warps;
  const int64_t parts = std::clamp<int64_t>((rows + least_rows - 1) / least_rows, 1, most_parts);
  const Scratch<W> dy_h(dweight ? parts * width : 0), dy_sum(dbias ? parts * width : 0);
  const PartialSums<W> sums{dweight ? dy_h.data() : nullptr, dbias ? dy_sum.data() : nullptr};
  constexpr int v = neighbours<T>;
  const auto fits = [&](const T* p) { return aligned(p, v); };
  const bool paired = width % v == 0 && fits(x) && fits(dy) && fits(weight) && fits(dx.data);
  const Target<T> to = gradients.dx;
  with_held<T>(width, paired, [&]<int V, int count, bool full>() {
    launch(backward_part<T, V, count, full>, LaunchGrid{dim3(static_cast<unsigned>(parts))}, size, in, to,
           (rows + parts - 1) / parts, sums);
  });
  sum_parts<T>(width, parts, {sums.dy_h, dweight.data, dweight.add}, {sums.dy, dbias.data, dbias.add});
}

TESSERA_FOR_FLOATS(LayerNormKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(LayerNormKernels<Cuda>::backward)

}  // namespace tessera
