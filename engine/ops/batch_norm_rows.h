#pragma once

// How the CPU's kernels that norm by columns see the rows, and what they multiply by.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "engine/core/parallel.h"
#include "engine/cpu/each.h"
#include "engine/cpu/fast_math.h"
#include "engine/ops/activations_kernels.h"
#include "engine/ops/batch_norm_kernels.h"

namespace tessera {

// Rows of few columns, several side by side as one: the loop over columns is then long enough for vectors,
// and a sum does not wait for the one before it. Column j of them is column j % width of the rows.
struct FoldedRows {
  static constexpr int64_t least_columns = 256;

  int64_t elements, fold, rows, width;

  explicit FoldedRows(RowsSize size)
      : elements(size.rows * size.width),
        fold(std::max<int64_t>(1, chunk_length(least_columns) / size.width)),
        rows((size.rows + fold - 1) / fold),
        width(fold * size.width) {}

  // The last row may be shorter than the others.
  int64_t columns(int64_t row) const { return std::min(width, elements - row * width); }
};

// A number for each column, repeated for the rows that lie side by side. [folded width]
template <class W, class Value> std::vector<W> of_columns(RowsSize size, Value value) {
  const FoldedRows folded(size);
  std::vector<W> all(static_cast<size_t>(folded.width));
  for (int64_t j = 0; j < folded.width; ++j) all[static_cast<size_t>(j)] = value(j % size.width);
  return all;
}

// A batch norm as the affine map of each column, y = f(scale x + shift). scale, shift [folded width]
template <class W> struct Affine {
  std::vector<W> scale, shift;

  template <class T>
  Affine(RowsSize size, const T* weight, const T* bias, const ColumnStatistics<W>& by)
      : scale(of_columns<W>(size,
                            [&](int64_t j) { return W(weight[j]) / std::sqrt(by.variance[j] + W(by.eps)); })),
        shift(of_columns<W>(
            size, [&](int64_t j) { return W(bias[j]) - by.mean[j] * scale[static_cast<size_t>(j)]; })) {}
};

// The value that a number of type T has after it was stored and read again.
template <class T> TESSERA_IN_LOOPS Wide<T> stored(Wide<T> value) {
  T number;
  store(number, value);
  return Wide<T>(number);
}

// F multiplies by 0 or by 1. The sum of two numbers of T then need not be rounded to T before F: rounding
// changes no sign, and F's value is rounded when it is stored.
template <class F>
inline constexpr bool slope_is_0_or_1 = std::is_same_v<F, Identity> || std::is_same_v<F, Relu>;

// The number that F is applied to is scale x + shift and, if `added`, the residual. It is rounded so that the
// bits are those of the norm, the addition and F as ops of their own.
template <class F, bool added, class T>
TESSERA_IN_LOOPS Wide<T> before_activation(Wide<T> scale, Wide<T> shift, T x, const T* residual, int64_t at) {
  const Wide<T> z = scale * Wide<T>(x) + shift;
  if constexpr (!added) return z;
  const Wide<T> sum = stored<T>(z) + Wide<T>(residual[at]);
  return slope_is_0_or_1<F> ? sum : stored<T>(sum);
}

// y = f(scale x + shift + residual) for some columns of folded rows; the residual may be null, y may be x.
template <class F, class T>
void norm_columns(int64_t columns, const Wide<T>* scale, const Wide<T>* shift, const T* x, const T* residual,
                  T* y) {
  const auto write = [=]<bool added>(std::bool_constant<added>) {
    write_each(0, columns, y, false, [=](int64_t j) {
      return F::value(before_activation<F, added>(scale[j], shift[j], x[j], residual, j));
    });
  };
  residual ? write(std::true_type{}) : write(std::false_type{});
}

}  // namespace tessera
