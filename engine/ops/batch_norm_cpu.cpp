#include <cmath>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/cpu/column_sums.h"
#include "engine/cpu/each.h"
#include "engine/ops/batch_norm_kernels.h"

namespace tessera {

template <>
template <class T>
void BatchNormKernels<Cpu>::statistics(RowsSize size, const T* x, double momentum, Wide<T>* mean,
                                       Wide<T>* variance, Wide<T>* running_mean, Wide<T>* running_var) {
  using W = Wide<T>;
  const int64_t rows = size.rows, width = size.width;
  const auto sums = column_sums<W>(rows, width, 1, [=](int64_t begin, int64_t end, W* sum) {
    for (int64_t i = begin; i < end; ++i)
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) sum[j] += W(x[i * width + j]);
  });
  for (int64_t j = 0; j < width; ++j) mean[j] = sums[static_cast<size_t>(j)] / W(rows);
  const auto squares = column_sums<W>(rows, width, 1, [=](int64_t begin, int64_t end, W* sum) {
    for (int64_t i = begin; i < end; ++i)
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) {
        const W centred = W(x[i * width + j]) - mean[j];
        sum[j] += centred * centred;
      }
  });
  const W keep = W(1 - momentum), take = W(momentum), unbiased = W(rows) / W(rows - 1);
  for (int64_t j = 0; j < width; ++j) {
    variance[j] = squares[static_cast<size_t>(j)] / W(rows);
    running_mean[j] = keep * running_mean[j] + take * mean[j];
    running_var[j] = keep * running_var[j] + take * variance[j] * unbiased;
  }
}

template <>
template <class T>
void BatchNormKernels<Cpu>::forward(RowsSize size, const T* x, const T* weight, const T* bias,
                                    const ColumnStatistics<Wide<T>>& by, T* y) {
  using W = Wide<T>;
  const int64_t rows = size.rows, width = size.width;
  const W *mean = by.mean, *variance = by.variance, eps = W(by.eps);
  std::vector<W> factors(static_cast<size_t>(2 * width));  // y = a x + b
  W *a = factors.data(), *b = a + width;
  for (int64_t j = 0; j < width; ++j) {
    a[j] = W(weight[j]) / std::sqrt(variance[j] + eps);
    b[j] = W(bias[j]) - mean[j] * a[j];
  }
  parallel_for(rows, chunk_length(256, width), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) store(y[i * width + j], a[j] * W(x[i * width + j]) + b[j]);
  });
}

template <>
template <class T>
void BatchNormKernels<Cpu>::backward(RowsSize size, const T* dy, const T* x, const T* weight,
                                     const ColumnStatistics<Wide<T>>& by,
                                     const LayerGradients<T>& gradients) {
  using W = Wide<T>;
  const int64_t rows = size.rows, width = size.width;
  const W *mean = by.mean, *variance = by.variance, eps = W(by.eps);
  const Target<T> dx = gradients.dx, dweight = gradients.dweight, dbias = gradients.dbias;
  std::vector<W> inverse(static_cast<size_t>(width));
  W* const rstd = inverse.data();
  for (int64_t j = 0; j < width; ++j) rstd[j] = 1 / std::sqrt(variance[j] + eps);
  const auto sums = column_sums<W>(rows, width, 2, [=](int64_t begin, int64_t end, W* dh) {
    for (int64_t i = begin; i < end; ++i)
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) {
        const W d = W(dy[i * width + j]), h = (W(x[i * width + j]) - mean[j]) * rstd[j];
        dh[j] += d * h;
        dh[width + j] += d;
      }
  });
  const W *dy_h = sums.data(), *dy_sum = dy_h + width;  // = dweight, dbias
  if (dx) {
    // dx = rstd weight (dy - mean(dy) - h mean(dy h)), the means only where the statistics are the batch's
    const W share = by.of_batch ? W(1) / W(rows) : W(0);
    parallel_for(rows, chunk_length(256, width), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) {
          const int64_t at = i * width + j;
          const W h = (W(x[at]) - mean[j]) * rstd[j];
          const W d = rstd[j] * W(weight[j]) * (W(dy[at]) - share * (dy_sum[j] + h * dy_h[j]));
          store(dx.data[at], dx.add ? W(dx.data[at]) + d : d);
        }
    });
  }
  for (int64_t j = 0; j < width; ++j) {
    if (dweight) dweight.data[j] = T(dweight.add ? W(dweight.data[j]) + dy_h[j] : dy_h[j]);
    if (dbias) dbias.data[j] = T(dbias.add ? W(dbias.data[j]) + dy_sum[j] : dy_sum[j]);
  }
}

TESSERA_FOR_FLOATS(BatchNormKernels<Cpu>::statistics)
TESSERA_FOR_FLOATS(BatchNormKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(BatchNormKernels<Cpu>::backward)

}  // namespace tessera
