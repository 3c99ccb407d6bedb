#pragma once

// How the CPU's kernels that norm by columns see the rows, and what they multiply by.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/core/parallel.h"
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

}  // namespace tessera
