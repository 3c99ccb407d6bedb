#pragma once

// The working memory of attention's CPU kernels: small matrices of float or double, rows padded with zeros to
// whole vectors, between the tokens where they lie and the products in registers.

#include <cstdint>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/core/simd.h"
#include "engine/ops/small_gemm.h"

namespace tessera {

// Memory that grows to the largest matrix ever asked of it; content is not kept.
template <class W> class Panel {
 public:
  // [rows, columns made whole vectors]
  Rows<W> fit(int64_t rows, int64_t columns) {
    const int64_t row = whole_vectors<W>(columns);
    memory_.resize(std::max(memory_.size(), static_cast<size_t>(rows * row / lanes<W>)));
    return {memory_.empty() ? nullptr : memory_.front().lane, row};
  }

 private:
  struct alignas(vector_bytes) Block {
    W lane[lanes<W>];
  };
  std::vector<Block> memory_;
};

// to [rows, columns] = from, rows `stride` apart; zeros up to the whole vector.
template <class T>
void load_rows(const T* from, int64_t stride, int64_t rows, int64_t columns, Rows<Wide<T>> to) {
  using W = Wide<T>;
  for (int64_t i = 0; i < rows; ++i) {
    const T* x = from + i * stride;
    W* row = to.data + i * to.row;
    if constexpr (std::is_same_v<T, W>) {
      if (columns == to.row) {
        for (int64_t j = 0; j < columns; j += lanes<W>) store_vector(row + j, load_vector(x + j));
        continue;
      }
    }
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) row[j] = W(x[j]);
    for (int64_t j = columns; j < to.row; ++j) row[j] = 0;
  }
}

// to [rows, columns] = factor * from, or added to it; to's rows are `stride` apart.
template <class T>
void store_rows(Rows<const Wide<T>> from, int64_t rows, int64_t columns, Wide<T> factor, T* to,
                int64_t stride, bool add) {
  using W = Wide<T>;
  for (int64_t i = 0; i < rows; ++i) {
    const W* row = from.data + i * from.row;
    T* y = to + i * stride;
    if constexpr (std::is_same_v<T, W>) {
      if (columns == from.row) {
        for (int64_t j = 0; j < columns; j += lanes<W>) {
          const Vector<W> value = factor * load_vector(row + j);
          store_vector(y + j, add ? load_vector(y + j) + value : value);
        }
        continue;
      }
    }
    write_each(0, columns, y, add, [=](int64_t j) { return factor * row[j]; });
  }
}

template <class W> void fill_rows(Rows<W> x, int64_t first, int64_t last, W value) {
  std::fill(x.data + first * x.row, x.data + last * x.row, value);
}

// to [columns, rows] = factor * from^T, in whole squares: `from` has whole vectors of rows, and `to` room for
// them.
template <class W> void transpose_rows(W factor, Rows<const W> from, int64_t rows, Rows<W> to) {
  for (int64_t i = 0; i < rows; i += lanes<W>)
    for (int64_t j = 0; j < from.row; j += lanes<W>)
      transpose_square(factor, from.data + i * from.row + j, from.row, to.data + j * to.row + i, to.row);
}

}  // namespace tessera
