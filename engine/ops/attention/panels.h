#pragma once

// The working memory of attention's CPU kernels: small matrices of float or double whose rows are padded with
// zeros to whole vectors. Tokens are copied into them, and products in registers read them.

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/cpu/each.h"
#include "engine/cpu/simd.h"
#include "engine/cpu/small_gemm.h"

namespace tessera {

// Memory that grows to the largest matrix ever requested. Its content is lost when it grows.
template <class W> class Panel {
 public:
  // Room for [rows, columns], the columns rounded up to whole vectors.
  Rows<W> fit(int64_t rows, int64_t columns) { return fit_rows(rows, whole_vectors<W>(columns)); }

  // As fit(), but the rows begin an odd number of vectors apart. The cache has few places for lines that are
  // a power of two apart, as the numbers of a column would be where there are 256 or 1,024 keys.
  Rows<W> fit_apart(int64_t rows, int64_t columns) {
    return fit_rows(rows, whole_vectors<W>(columns) | lanes<W>);
  }

 private:
  Rows<W> fit_rows(int64_t rows, int64_t row) {
    const size_t blocks = static_cast<size_t>(rows * row / lanes<W>);
    if (memory_.size() < blocks) memory_.resize(blocks);
    return {memory_.empty() ? nullptr : memory_.front().lane, row};
  }

  struct alignas(vector_bytes) Block {
    W lane[lanes<W>];
  };
  std::vector<Block> memory_;
};

// to [rows, columns] = from, whose rows are `stride` elements apart; zeros fill the last vector.
template <class T>
void load_rows(const T* from, int64_t stride, int64_t rows, int64_t columns, Rows<Wide<T>> to) {
  using W = Wide<T>;
  if constexpr (std::is_same_v<T, W>) {
    if (columns == to.row) {
      for (int64_t j = 0; j < columns; j += lanes<W>)
        for (int64_t i = 0; i < rows; ++i)
          store_vector(to.data + i * to.row + j, load_vector(from + i * stride + j));
      return;
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    const T* x = from + i * stride;
    W* row = to.data + i * to.row;
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) row[j] = W(x[j]);
    for (int64_t j = columns; j < to.row; ++j) row[j] = 0;
  }
}

// to [rows, columns] = factor(row) * from or, with `add`, += it; the rows of `to` are `stride` elements
// apart.
template <class T, class Factor>
void store_rows(Rows<const Wide<T>> from, int64_t rows, int64_t columns, Factor&& factor, T* to,
                int64_t stride, bool add) {
  using W = Wide<T>;
  if constexpr (std::is_same_v<T, W>) {
    if (columns == from.row) {
      for (int64_t j = 0; j < columns; j += lanes<W>)
        for (int64_t i = 0; i < rows; ++i) {
          T* y = to + i * stride + j;
          const Vector<W> value = factor(i) * load_vector(from.data + i * from.row + j);
          store_vector(y, add ? load_vector(y) + value : value);
        }
      return;
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    const W* row = from.data + i * from.row;
    write_each(0, columns, to + i * stride, add, [c = factor(i), row](int64_t j) { return c * row[j]; });
  }
}

template <class W> void fill_rows(Rows<W> x, int64_t first, int64_t last, W value) {
  std::fill(x.data + first * x.row, x.data + last * x.row, value);
}

// to [columns, rows] = factor * from^T, by squares of lanes x lanes; `from` has a whole number of them, and
// `to` has room for them.
template <class W> void transpose_rows(W factor, Rows<W> from, int64_t rows, Rows<W> to) {
  for (int64_t i = 0; i < rows; i += lanes<W>)
    for (int64_t j = 0; j < from.row; j += lanes<W>)
      transpose_square(factor, from.data + i * from.row + j, from.row, to.data + j * to.row + i, to.row);
}

}  // namespace tessera
