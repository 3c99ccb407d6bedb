#pragma once

// Matrix products on one core for matrices that fit its caches and are too thin for BLAS to be fast:
// attention's, whose depth or width is a head's 16 to 64. A block of the result stays in registers while the
// depth runs past it; the left matrix is broadcast number by number, so that it may lie transposed.

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "engine/core/simd.h"

namespace tessera {

// Element (i, k) is data[i * row + k * column].
template <class W> struct Strided {
  const W* data;
  int64_t row, column;
};

// Row i begins at data + i * row; rows are whole vectors.
template <class W> struct Rows {
  W* data;
  int64_t row;
};

namespace detail {

// C [R, N vectors] = start + A B, all in registers.
template <class W, int R, int N>
void gemm_block(int64_t depth, Strided<W> a, Rows<const W> b, Rows<const W> start, Rows<W> c) {
  Vector<W> sum[R][N];
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n)
      sum[r][n] = start.data ? load_vector(start.data + r * start.row + n * lanes<W>) : Vector<W>{};
  for (int64_t k = 0; k < depth; ++k) {
    Vector<W> b_row[N];
    for (int n = 0; n < N; ++n) b_row[n] = load_vector(b.data + k * b.row + n * lanes<W>);
    for (int r = 0; r < R; ++r) {
      const W factor = a.data[r * a.row + k * a.column];
      for (int n = 0; n < N; ++n) sum[r][n] += factor * b_row[n];
    }
  }
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) store_vector(c.data + r * c.row + n * lanes<W>, sum[r][n]);
}

// Of the registers, N hold a row of B, one a number of A, the rest the block of C.
inline constexpr int most_vectors = vector_registers == 32 ? 6 : 3;
constexpr int most_rows(int vectors) { return std::min(12, (vector_registers - 1 - vectors) / vectors); }

template <class W> using GemmBlock = void (*)(int64_t, Strided<W>, Rows<const W>, Rows<const W>, Rows<W>);

template <class W, int N, int... r>
constexpr std::array<GemmBlock<W>, sizeof...(r)> gemm_blocks(std::integer_sequence<int, r...>) {
  return {gemm_block<W, r + 1, N>...};
}

// The rows of C in blocks of near equal height, at most what the registers hold.
template <class W, int N>
void gemm_columns(int64_t m, int64_t depth, Strided<W> a, Rows<const W> b, Rows<const W> start, Rows<W> c) {
  static constexpr auto blocks = gemm_blocks<W, N>(std::make_integer_sequence<int, most_rows(N)>());
  const int64_t count = (m + most_rows(N) - 1) / most_rows(N);
  for (int64_t t = 0, i = 0; t < count; ++t) {
    const int64_t rows = m / count + (t < m % count);
    const Rows<const W> from{start.data ? start.data + i * start.row : nullptr, start.row};
    blocks[static_cast<size_t>(rows - 1)](depth, {a.data + i * a.row, a.row, a.column}, b, from,
                                          {c.data + i * c.row, c.row});
    i += rows;
  }
}

template <class W, int... n> constexpr auto gemm_panels(std::integer_sequence<int, n...>) {
  return std::array{gemm_columns<W, n + 1>...};
}

}  // namespace detail

// C [m, n] = start + A [m, depth] B [depth, n], n a multiple of the lanes. `start` may be C itself (which
// adds), one row for all (its stride 0), or null (which is zero).
template <class W>
void small_gemm(int64_t m, int64_t n, int64_t depth, Strided<W> a, Rows<const W> b, Rows<const W> start,
                Rows<W> c) {
  static constexpr auto panels =
      detail::gemm_panels<W>(std::make_integer_sequence<int, detail::most_vectors>());
  const int64_t vectors = n / lanes<W>, count = (vectors + detail::most_vectors - 1) / detail::most_vectors;
  for (int64_t t = 0, j = 0; t < count; ++t) {
    const int64_t width = vectors / count + (t < vectors % count);
    const Rows<const W> from{start.data ? start.data + j : nullptr, start.row};
    panels[static_cast<size_t>(width - 1)](m, depth, a, {b.data + j, b.row}, from, {c.data + j, c.row});
    j += width * lanes<W>;
  }
}

}  // namespace tessera
