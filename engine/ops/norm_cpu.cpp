#include <cmath>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/cpu/each.h"
#include "engine/ops/norm_kernels.h"

namespace tessera {

namespace {

constexpr int64_t most_rows = 64;  // of a chunk

template <class T> struct Moments { T mean, rstd; };

// The first element is subtracted before summing, so that a constant row has an exact mean. Otherwise its
// rounding error, 1e-7 of its size, would be divided by sqrt(eps) and grow to 3e-5.
template <class T> Moments<Wide<T>> moments(const T* x, int64_t width, double eps) {
  const Wide<T> first = Wide<T>(x[0]);
  Wide<T> sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < width; ++j) sum += Wide<T>(x[j]) - first;
  const Wide<T> mean = first + sum / Wide<T>(width);
#pragma omp simd reduction(+ : squares)
  for (int64_t j = 0; j < width; ++j) {
    const Wide<T> centred = Wide<T>(x[j]) - mean;
    squares += centred * centred;
  }
  return {mean, 1 / std::sqrt(squares / Wide<T>(width) + Wide<T>(eps))};
}

}  // namespace

template <>
template <class T>
void LayerNormKernels<Cpu>::forward(RowsSize size, const T* x, const T* weight, const T* bias, double eps,
                                    T* y, Wide<T>* mean, Wide<T>* rstd) {
  const int64_t rows = size.rows, width = size.width;
  parallel_for(rows, chunk_length(most_rows, width), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* row = x + i * width;
      T* out = y + i * width;
      const auto stats = moments(row, width, eps);
      const auto m = mean[i] = stats.mean, r = rstd[i] = stats.rstd;
#pragma omp simd
      for (int64_t j = 0; j < width; ++j)
        store(out[j], (Wide<T>(row[j]) - m) * r * Wide<T>(weight[j]) + Wide<T>(bias[j]));
    }
  });
}

template <>
template <class T>
void LayerNormKernels<Cpu>::backward(RowsSize size, const T* dy, const T* x, const T* weight,
                                     const Wide<T>* mean, const Wide<T>* rstd,
                                     const LayerGradients<T>& gradients) {
  using W = Wide<T>;
  const int64_t rows = size.rows, width = size.width;
  const Target<T> dx = gradients.dx;
  const int64_t grain = chunk_length(most_rows, width), chunks = (rows + grain - 1) / grain;
  std::vector<W> sums(static_cast<size_t>(chunks * 2 * width), W(0));  // dweight, dbias of each chunk
  parallel_for(rows, grain, [=, &sums](int64_t begin, int64_t end) {
    W* weight_sum = sums.data() + begin / grain * 2 * width;
    W* bias_sum = weight_sum + width;
    for (int64_t i = begin; i < end; ++i) {
      const T *dy_row = dy + i * width, *x_row = x + i * width;
      const W m = mean[i], r = rstd[i];
      W g_sum = 0, gh_sum = 0;  // of g = dy * weight, and of g h
#pragma omp simd reduction(+ : g_sum, gh_sum)
      for (int64_t j = 0; j < width; ++j) {
        const W h = (W(x_row[j]) - m) * r, d = W(dy_row[j]), g = d * W(weight[j]);
        g_sum += g;
        gh_sum += g * h;
        weight_sum[j] += d * h;
        bias_sum[j] += d;
      }
      if (!dx) continue;
      const W g_mean = g_sum / W(width), gh_mean = gh_sum / W(width);
      T* dx_row = dx.data + i * width;
      const W keep = dx.add ? W(1) : W(0);
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) {
        const W h = (W(x_row[j]) - m) * r;
        const W d = (W(dy_row[j]) * W(weight[j]) - g_mean - h * gh_mean) * r;
        store(dx_row[j], keep != 0 ? W(dx_row[j]) + d : d);
      }
    }
  });
  const auto total = [&](const Target<T>& out, int64_t offset) {
    if (!out) return;
    for (int64_t j = 0; j < width; ++j) {
      W sum = out.add ? W(out.data[j]) : W(0);
      for (int64_t c = 0; c < chunks; ++c) sum += sums[static_cast<size_t>((2 * c + offset) * width + j)];
      out.data[j] = T(sum);
    }
  };
  total(gradients.dweight, 0);
  total(gradients.dbias, 1);
}

TESSERA_FOR_FLOATS(LayerNormKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(LayerNormKernels<Cpu>::backward)

}  // namespace tessera
