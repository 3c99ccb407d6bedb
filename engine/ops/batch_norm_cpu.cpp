#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/cpu/column_sums.h"
#include "engine/cpu/each.h"
#include "engine/ops/activations_bf16.h"
#include "engine/ops/activations_kernels.h"
#include "engine/ops/batch_norm_kernels.h"
#include "engine/ops/batch_norm_rows.h"

namespace tessera {

namespace {

// Calls some(Together<n>, offset, columns) for the n folded rows that begin at the offset, until it has been
// called for all rows [begin, end). Several rows together read what belongs to a column once.
template <int n> using Together = std::integral_constant<int, n>;
template <class Some> void for_some_rows(const FoldedRows& folded, int64_t begin, int64_t end, Some some) {
  constexpr int most = 8;
  int64_t i = begin;
  for (; i + most <= end && folded.columns(i + most - 1) == folded.width; i += most)
    some(Together<most>{}, i * folded.width, folded.width);
  for (; i < end; ++i) some(Together<1>{}, i * folded.width, folded.columns(i));
}

// Calls f(r) for r in [0, n), in loops that are to become vectors.
template <class F, int n> TESSERA_IN_LOOPS void each_of(Together<n>, F f) {
  if constexpr (n == 1) {
    f(0);
  } else {
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) f(r);
  }
}

// `count` sums over the rows for each column, [count, width]: add(rows, offset, columns, sums) adds the
// folded rows that begin at the offset to sums, [count, folded width].
template <class W, class Add> std::vector<W> sums_of_columns(RowsSize size, int64_t count, Add add) {
  const FoldedRows folded(size);
  std::vector<W> sums =
      column_sums<W>(folded.rows, folded.width, count, [=](int64_t begin, int64_t end, W* sum) {
        for_some_rows(folded, begin, end,
                      [=](auto rows, int64_t at, int64_t columns) { add(rows, at, columns, sum); });
      });
  for (int64_t k = 0; k < count; ++k) {
    W* const own = sums.data() + k * folded.width;
    add_parts(0, size.width, folded.fold, size.width, own);
    std::copy_n(own, size.width, sums.data() + k * size.width);
  }
  return sums;
}

// Calls row(offset, columns) for every folded row, on all threads.
template <class Row> void for_folded_rows(RowsSize size, Row row) {
  const FoldedRows folded(size);
  parallel_rows(folded.rows, folded.width, [=](int64_t i) { row(i * folded.width, folded.columns(i)); });
}

// dz, the gradient of what f is applied to, at each number of x.
template <class F, class T> struct BeforeActivation {
  using W = Wide<T>;
  const T *dy, *x;
  const W *scale, *shift;

  TESSERA_IN_LOOPS W operator()(int64_t at, int64_t column) const {
    return W(dy[at]) * F::slope(scale[column] * W(x[at]) + shift[column]);
  }
};

}  // namespace

// In one pass: differences are taken from the mean of the first rows, a 64th of all. The variance is at least
// a 64th of the square of that mean's distance from all rows' mean, so no more than six bits cancel.
template <>
template <class T>
void BatchNormKernels<Cpu>::statistics(RowsSize size, const T* x, double momentum, Wide<T>* mean,
                                       Wide<T>* variance, Wide<T>* running_mean, Wide<T>* running_var) {
  using W = Wide<T>;
  const W n = W(size.rows);
  const RowsSize first{(size.rows + 63) / 64, size.width};
  const auto first_sums = sums_of_columns<W>(first, 1, [=](auto rows, int64_t at, int64_t columns, W* sum) {
    const T* const from = x + at;
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) {
      W total = 0;
      each_of(rows, [&](int r) { total += W(from[r * columns + j]); });
      sum[j] += total;
    }
  });
  const auto near =
      of_columns<W>(size, [&](int64_t j) { return first_sums[static_cast<size_t>(j)] / W(first.rows); });
  const W* const centre = near.data();
  const int64_t stride = static_cast<int64_t>(near.size());
  const auto sums = sums_of_columns<W>(size, 2, [=](auto rows, int64_t at, int64_t columns, W* sum) {
    const T* const from = x + at;
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) {
      const W middle = centre[j];
      W total = 0, squares = 0;
      each_of(rows, [&](int r) {
        const W off = W(from[r * columns + j]) - middle;
        total += off;
        squares += off * off;
      });
      sum[j] += total;
      sum[stride + j] += squares;
    }
  });
  const W *off = sums.data(), *squares = off + size.width;
  const W keep = W(1 - momentum), take = W(momentum), unbiased = n / (n - 1);
  for (int64_t j = 0; j < size.width; ++j) {
    const W moved = off[j] / n;
    mean[j] = centre[j] + moved;
    variance[j] = std::max(squares[j] / n - moved * moved, W(0));
    running_mean[j] = keep * running_mean[j] + take * mean[j];
    running_var[j] = keep * running_var[j] + take * variance[j] * unbiased;
  }
}

template <>
template <class T>
void BatchNormKernels<Cpu>::forward(RowsSize size, const T* x, const T* weight, const T* bias,
                                    const ColumnStatistics<Wide<T>>& by, Activation f, T* y) {
  const Affine<Wide<T>> affine(size, weight, bias, by);
  const Wide<T>*a = affine.scale.data(), *b = affine.shift.data();
  if constexpr (std::is_same_v<T, bf16>)
    if (const Bf16Norm norm(f); norm)
      return for_folded_rows(
          size, [=](int64_t at, int64_t columns) { norm(columns, columns, a, b, x + at, nullptr, y + at); });
  with_activation(f, [=]<class F>(F) {
    for_folded_rows(size, [=](int64_t at, int64_t columns) {
      write_each(0, columns, y + at, false,
                 [=](int64_t j) { return F::value(a[j] * Wide<T>(x[at + j]) + b[j]); });
    });
  });
}

namespace {

// The sums over the rows of dz h and of dz, [2, width]: dweight and dbias.
template <class F, class T>
std::vector<Wide<T>> gradient_sums(RowsSize size, const BeforeActivation<F, T>& dz, const Wide<T>* mean,
                                   const Wide<T>* rstd) {
  const int64_t stride = FoldedRows(size).width;
  return sums_of_columns<Wide<T>>(size, 2, [=](auto rows, int64_t at, int64_t columns, Wide<T>* sum) {
    const BeforeActivation<F, T> from = dz;  // a copy, whose pointers the loop need not load
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) {
      const Wide<T> middle = mean[j];
      Wide<T> along = 0, level = 0;
      each_of(rows, [&](int r) {
        const Wide<T> d = from(at + r * columns + j, j);
        along += d * (Wide<T>(from.x[at + r * columns + j]) - middle);
        level += d;
      });
      sum[j] += along * rstd[j];
      sum[stride + j] += level;
    }
  });
}

}  // namespace

template <>
template <class T>
void BatchNormKernels<Cpu>::backward(RowsSize size, const T* dy, const T* x, const T* weight, const T* bias,
                                     const ColumnStatistics<Wide<T>>& by, Activation f,
                                     const LayerGradients<T>& gradients) {
  using W = Wide<T>;
  const Affine<W> affine(size, weight, bias, by);
  const W eps = W(by.eps);
  const auto means = of_columns<W>(size, [&](int64_t j) { return by.mean[j]; });
  const auto inverse = of_columns<W>(size, [&](int64_t j) { return 1 / std::sqrt(by.variance[j] + eps); });
  const W *mean = means.data(), *rstd = inverse.data(), *scale = affine.scale.data();
  const Target<T> dx = gradients.dx, dweight = gradients.dweight, dbias = gradients.dbias;
  with_activation(f, [&]<class F>(F) {
    const BeforeActivation<F, T> dz{dy, x, scale, affine.shift.data()};
    const std::vector<W> sums = gradient_sums(size, dz, mean, rstd);
    const auto total = [&](int64_t k) { return sums[static_cast<size_t>(k)]; };
    for (int64_t j = 0; j < size.width; ++j) {
      if (dweight) dweight.data[j] = T(dweight.add ? W(dweight.data[j]) + total(j) : total(j));
      if (dbias)
        dbias.data[j] = T(dbias.add ? W(dbias.data[j]) + total(size.width + j) : total(size.width + j));
    }
    if (!dx) return;
    // dx = rstd weight (dz - mean(dz) - h mean(dz h)), the means only where the statistics are the batch's
    const W share = by.of_batch ? W(1) / W(size.rows) : W(0);
    const auto dz_h_mean = of_columns<W>(size, [&](int64_t j) { return share * total(j); });
    const auto dz_mean = of_columns<W>(size, [&](int64_t j) { return share * total(size.width + j); });
    const W *along = dz_h_mean.data(), *level = dz_mean.data();
    for_folded_rows(size, [=](int64_t at, int64_t columns) {
      write_each(0, columns, dx.data + at, dx.add, [=](int64_t j) {
        const W h = (W(x[at + j]) - mean[j]) * rstd[j];
        return scale[j] * (dz(at + j, j) - level[j] - h * along[j]);
      });
    });
  });
}

TESSERA_FOR_FLOATS(BatchNormKernels<Cpu>::statistics)
TESSERA_FOR_FLOATS(BatchNormKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(BatchNormKernels<Cpu>::backward)

}  // namespace tessera
