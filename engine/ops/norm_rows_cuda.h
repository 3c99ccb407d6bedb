#pragma once

// Layer norm whose rows a warp holds in registers, with or without the residual that makes them: the kernels
// of norm_cuda.cu and residual_norm_cuda.cu.

#include "engine/cuda/late_sums.h"
#include "engine/cuda/rows.h"
#include "engine/cuda/special.h"
#include "engine/ops/residual_norm_kernels.h"

namespace tessera::norm_detail {

inline constexpr int warps = block_threads / warp;

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

  // row[column of e] = f(e) or, with `add`, += f(e); and scaled[column of e] = factor times that, if it is
  // not null.
  template <class T, class F>
  __device__ static void write(T* row, int64_t width, int lane, bool add, const F& f, T* scaled = nullptr,
                               Wide<T> factor = 0) {
#pragma unroll
    for (int e = 0; e < count; e += V) {
      if (!has(e, lane, width)) continue;
      T* const place = row + column(e, lane);
      Pack<T, V> pack, times;
      if (add) pack = load_pack<V>(place);
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const Wide<T> value = f(e + v);
        pack.at[v] = T(add ? Wide<T>(pack.at[v]) + value : value);
        times.at[v] = T(factor * Wide<T>(pack.at[v]));
      }
      store_pack<V>(place, pack);
      if (scaled) store_pack<V>(scaled + column(e, lane), times);
    }
  }
};

// The residual whose sum is normed (residual_norm_kernels.h).
template <class T> struct ResidualOn {
  int64_t rows_an_image;
  double p;
  DrawKey key;
  const T* f;
  T* to;  // the sum in the forward pass, the branch's gradient in the backward pass

  // 1 / (1 - p) or 0: what the branch of a row's image is multiplied by.
  __device__ Wide<T> factor(int64_t row) const {
    return path_kept(row / rows_an_image, p, key()) ? Wide<T>(1 / (1 - p)) : Wide<T>(0);
  }
};
template <class T> ResidualOn<T> residual_on(const ResidualSize& size, const T* f, T* to) {
  return {size.rows_an_image, size.p, size.p > 0 ? Graph::draw_key(size.key) : DrawKey{}, f, to};
}

// y = h weight + bias, h = (x - mean) rstd. A warp reads a row once and holds it in registers. With `summed`
// the row is x + factor f, rounded as memory holds it.
template <class T, int V, int count, bool full, bool summed>
__global__ void __launch_bounds__(block_threads)
    forward_held(RowsSize size, const T* x, ResidualOn<T> residual, const T* weight, const T* bias,
                 Wide<T> eps, T* y, Wide<T>* mean, Wide<T>* rstd) {
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
    if constexpr (summed) {
      const W factor = residual.factor(i);
      if (factor != 0)
        Row::read(residual.f + i * width, width, lane,
                  [&](int e, W value) { held[e] = W(T(held[e] + factor * value)); });
      Row::write(residual.to + i * width, width, lane, false, [&](int e) { return held[e]; });
    }
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

inline constexpr int64_t most_held = 32 * warp;  // numbers of a row that a warp holds

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
// With `summed` also the gradient of a residual's branch, factor dx.
template <class T, int V, int count, bool full, bool summed>
__global__ void __launch_bounds__(block_threads)
    backward_part(RowsSize size, BackwardInputs<T> in, Target<T> dx, ResidualOn<T> residual,
                  int64_t rows_a_part, PartialSums<Wide<T>> parts) {
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
    const auto dx_of = [&](int e) { return (g[e] - g_mean - h[e] * gh_mean) * r; };
    if constexpr (summed)
      Row::write(dx.data + i * width, width, lane, dx.add, dx_of, residual.to + i * width,
                 residual.factor(i));
    else
      Row::write(dx.data + i * width, width, lane, dx.add, dx_of);
  }
  if (parts.dy_h) sum_warps<Row>(dy_h, width, parts.dy_h + blockIdx.x * width);
  if (parts.dy) sum_warps<Row>(dy_sum, width, parts.dy + blockIdx.x * width);
}

// The gradients, and of a residual's branch where it has a place for it. Rows are at most 32 warps wide.
template <class T>
void backward_rows(RowsSize size, const BackwardInputs<T>& in, const LayerGradients<T>& gradients,
                   const ResidualOn<T>& residual) {
  using W = Wide<T>;
  const int64_t rows = size.rows, width = size.width;
  const auto& [dx, dweight, dbias] = gradients;
  constexpr int64_t most_parts = 512, least_rows = 4 * warps;
  const int64_t parts = std::clamp<int64_t>((rows + least_rows - 1) / least_rows, 1, most_parts);
  const LateParts<T> dy_h = late_parts<T>(dweight ? parts * width : 0),
                     dy_sum = late_parts<T>(dbias ? parts * width : 0);
  const PartialSums<W> sums{dweight ? dy_h->data() : nullptr, dbias ? dy_sum->data() : nullptr};
  constexpr int v = neighbours<T>;
  const auto fits = [&](const T* p) { return aligned(p, v); };
  const bool paired =
      width % v == 0 && fits(in.x) && fits(in.dy) && fits(in.weight) && fits(dx.data) && fits(residual.to);
  const Target<T> to = dx;
  with_held<T>(width, paired, [&]<int V, int count, bool full>() {
    launch(residual.to ? backward_part<T, V, count, full, true> : backward_part<T, V, count, full, false>,
           LaunchGrid{dim3(static_cast<unsigned>(parts))}, size, in, to, residual, (rows + parts - 1) / parts,
           sums);
  });
  if (dweight) sum_late(width, parts, dy_h, dweight.data, dweight.add);
  if (dbias) sum_late(width, parts, dy_sum, dbias.data, dbias.add);
}

}  // namespace tessera::norm_detail
