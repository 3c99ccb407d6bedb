#include <cmath>

#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/cpu/bf16_gemm.h"
#include "engine/cpu/column_sums.h"
#include "engine/cpu/each.h"
#include "engine/cpu/row_sums.h"
#include "engine/ops/norm_kernels.h"

namespace tessera {

namespace {

constexpr int64_t most_rows = 64;  // of a chunk

template <class T> struct Moments { T mean, rstd; };

// The first element is subtracted before summing, so that a constant row has an exact mean. Otherwise its
// rounding error, 1e-7 of its size, would be divided by sqrt(eps) and grow to 3e-5.
template <class T> Moments<Wide<T>> moments(const T* x, int64_t width, double eps) {
  const Wide<T> first = Wide<T>(x[0]);
  const auto off = [=](auto value) { return value - first; };
  const Wide<T> mean = first + sum_each(width, off, x) / Wide<T>(width);
  const auto square = [=](auto value) {
    const auto centred = value - mean;
    return centred * centred;
  };
  const Wide<T> squares = sum_each(width, square, x);
  return {mean, 1 / std::sqrt(squares / Wide<T>(width) + Wide<T>(eps))};
}

// The norms y of rows that lie together, their means and their rstd.
template <class T>
void norm_rows(int64_t rows, int64_t width, const T* x, const T* weight, const T* bias, double eps, T* y,
               Wide<T>* mean, Wide<T>* rstd) {
  if constexpr (std::is_same_v<T, bf16>)
    if (const Bf16Kernels* kernels = bf16_kernels())
      return kernels->layer_norm(rows, width, x, weight, bias, static_cast<float>(eps), y, mean, rstd);
  for (int64_t i = 0; i < rows; ++i) {
    const T* row = x + i * width;
    T* out = y + i * width;
    const auto stats = moments(row, width, eps);
    const auto m = mean[i] = stats.mean, r = rstd[i] = stats.rstd;
#pragma omp simd
    for (int64_t j = 0; j < width; ++j)
      store(out[j], (Wide<T>(row[j]) - m) * r * Wide<T>(weight[j]) + Wide<T>(bias[j]));
  }
}

// Sums over the columns of a row: of g = dy * weight, and of g h.
template <class W> struct RowSums { W g = 0, gh = 0; };

// Adds a row's share to dweight and dbias, and returns what dx takes of the row.
template <class T>
RowSums<Wide<T>> add_row(int64_t width, const T* dy, const T* x, const T* weight, Wide<T> mean, Wide<T> rstd,
                         Wide<T>* dweight, Wide<T>* dbias) {
  using W = Wide<T>;
  Vector<W> g_sum{}, gh_sum{};
  int64_t j = 0;
  for (; j + lanes<W> <= width; j += lanes<W>) {
    const Vector<W> h = (load_wide(x + j) - mean) * rstd, d = load_wide(dy + j),
                    g = d * load_wide(weight + j);
    g_sum += g;
    gh_sum += g * h;
    store_vector(dweight + j, load_vector(dweight + j) + d * h);
    store_vector(dbias + j, load_vector(dbias + j) + d);
  }
  RowSums<W> sums{sum_of_lanes<W>(g_sum), sum_of_lanes<W>(gh_sum)};
  for (; j < width; ++j) {
    const W h = (W(x[j]) - mean) * rstd, d = W(dy[j]), g = d * W(weight[j]);
    sums.g += g;
    sums.gh += g * h;
    dweight[j] += d * h;
    dbias[j] += d;
  }
  return sums;
}

// dx of rows that lie together, if it is wanted, and their part of the sums dweight and dbias.
template <class T>
void norm_rows_backward(int64_t rows, int64_t width, const T* dy, const T* x, const T* weight,
                        const Wide<T>* mean, const Wide<T>* rstd, const Target<T>& dx, Wide<T>* dweight,
                        Wide<T>* dbias) {
  using W = Wide<T>;
  if constexpr (std::is_same_v<T, bf16>)
    if (const Bf16Kernels* kernels = bf16_kernels())
      return kernels->layer_norm_backward(rows, width,
                                          {dy, x, weight, mean, rstd, dx.add, dx.data, dweight, dbias});
  for (int64_t i = 0; i < rows; ++i, dy += width, x += width) {
    const W m = mean[i], r = rstd[i];
    const auto [g_sum, gh_sum] = add_row(width, dy, x, weight, m, r, dweight, dbias);
    if (!dx) continue;
    const W g_mean = g_sum / W(width), gh_mean = gh_sum / W(width);
    write_each(0, width, dx.data + i * width, dx.add, [=](int64_t j) {
      const W h = (W(x[j]) - m) * r;
      return (W(dy[j]) * W(weight[j]) - g_mean - h * gh_mean) * r;
    });
  }
}

}  // namespace

template <>
template <class T>
void LayerNormKernels<Cpu>::forward(RowsSize size, const T* x, const T* weight, const T* bias, double eps,
                                    T* y, Wide<T>* mean, Wide<T>* rstd) {
  forward_of(size, {}, x, weight, bias, eps, y, mean, rstd);
}

template <>
template <class T>
void LayerNormKernels<Cpu>::forward_of(RowsSize size, const ImageRows& of, const T* x, const T* weight,
                                       const T* bias, double eps, T* y, Wide<T>* mean, Wide<T>* rstd) {
  const int64_t width = size.width;
  parallel_for(size.rows, chunk_length(most_rows, width), [=](int64_t begin, int64_t end) {
    of.each_run(begin, end, [=](int64_t first, int64_t last, int64_t shift) {
      norm_rows(last - first, width, x + (first + shift) * width, weight, bias, eps, y + first * width,
                mean + first, rstd + first);
    });
  });
}

template <>
template <class T>
void LayerNormKernels<Cpu>::backward(RowsSize size, const T* dy, const T* x, const T* weight,
                                     const Wide<T>* mean, const Wide<T>* rstd,
                                     const LayerGradients<T>& gradients) {
  backward_of(size, {}, dy, x, weight, mean, rstd, gradients);
}

template <>
template <class T>
void LayerNormKernels<Cpu>::backward_of(RowsSize size, const ImageRows& of, const T* dy, const T* x,
                                        const T* weight, const Wide<T>* mean, const Wide<T>* rstd,
                                        const LayerGradients<T>& gradients) {
  using W = Wide<T>;
  const int64_t width = size.width;
  const Target<T> dx = gradients.dx;
  const auto sums = column_sums<W>(size.rows, width, 2, [=](int64_t begin, int64_t end, W* dweight) {
    W* dbias = dweight + width;
    of.each_run(begin, end, [=](int64_t first, int64_t last, int64_t shift) {
      const int64_t at = (first + shift) * width;
      norm_rows_backward(last - first, width, dy + first * width, x + at, weight, mean + first, rstd + first,
                         Target<T>{dx ? dx.data + at : nullptr, dx.add}, dweight, dbias);
    });
  });
  const auto write = [&](const Target<T>& out, const W* sum) {
    if (out) write_each(0, width, out.data, out.add, [=](int64_t j) { return sum[j]; });
  };
  write(gradients.dweight, sums.data());
  write(gradients.dbias, sums.data() + width);
}

TESSERA_FOR_FLOATS(LayerNormKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(LayerNormKernels<Cpu>::backward)
TESSERA_FOR_FLOATS(LayerNormKernels<Cpu>::forward_of)
TESSERA_FOR_FLOATS(LayerNormKernels<Cpu>::backward_of)

}  // namespace tessera
