#pragma once

// Products A B on one core where many rows share the same small B, as a layer's rows share its weight. B is
// packed once into panels two vectors wide; each stays in the first cache while the rows of A pass. A is read
// in place and C is written once, so that only B is copied. BLAS packs both factors at every call, which
// costs a tenth of the time at the depths of a vision transformer. An A that lies transposed can be packed
// too, in bands: in place, each of its columns is a line far from the next, and they share few sets of the
// cache.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/core/dtype.h"
#include "engine/cpu/small_gemm.h"

namespace tessera {

template <class W> inline constexpr int64_t panel_width = 2 * lanes<W>;

// The number of elements of a packed B [depth, n].
template <class W> constexpr int64_t packed_elements(int64_t depth, int64_t n) {
  return (n + panel_width<W> - 1) / panel_width<W> * panel_width<W> * depth;
}

// Packs the `width` columns of B from `column` on as [depth, width], with zeros beyond column n. Element (k,
// j) of B is b.data[k * b.row + j * b.column].
template <class T, class W = Wide<T>>
void pack_panel(int64_t depth, int64_t n, Strided<T> b, int64_t column, W* panel) {
  constexpr int64_t width = panel_width<W>;
  const int64_t columns = std::min(width, n - column);
  const T* from = b.data + column * b.column;
  int64_t k = 0;
  if constexpr (std::is_same_v<T, W>)
    if (b.row == 1 && columns == width)  // B lies transposed: by squares
      for (; k + lanes<W> <= depth; k += lanes<W>)
        for (int64_t j = 0; j < width; j += lanes<W>)
          transpose_square(W(1), from + j * b.column + k, b.column, panel + k * width + j, width);
  if (b.column == 1 && columns == width)  // a loop of known length becomes vectors
    for (; k < depth; ++k)
      for (int64_t j = 0; j < width; ++j) panel[k * width + j] = W(from[k * b.row + j]);
  for (; k < depth; ++k) {
    for (int64_t j = 0; j < columns; ++j) panel[k * width + j] = W(from[k * b.row + j * b.column]);
    std::fill(panel + k * width + columns, panel + (k + 1) * width, W(0));
  }
}

// Packs all panels of a B [depth, n] that lies row after row; panel j / width begins at j * whole, where the
// depth may be a part of the `whole` one. It goes row by row: B streams in, where a panel's columns would be
// lines far from each other.
template <class T, class W = Wide<T>>
void pack_rows(int64_t depth, int64_t n, const T* b, int64_t whole, W* panels) {
  constexpr int64_t width = panel_width<W>;
  const int64_t full = n / width * width;
  for (int64_t k = 0; k < depth; ++k) {
    const T* const from = b + k * n;
    W* to = panels + k * width;
    for (int64_t j = 0; j < full; j += width, to += width * whole)
      for (int64_t c = 0; c < width; ++c) to[c] = W(from[j + c]);
  }
  if (full < n) pack_panel<T>(depth, n, {b, n, 1}, full, panels + full * whole);
}

// The rows of A that meet a panel at a time: one or two of small_gemm()'s blocks.
inline constexpr int64_t rows_a_band = 12;

// Packs rows [0, m) and columns [0, depth) of an A that lies transposed, element (i, k) at a[k * stride + i],
// as bands [whole, 12], the last one of fewer rows. Band i / 12 begins at i * whole; the columns may be a
// part of the `whole` depth, which begins at `first`.
template <class W>
void pack_bands(int64_t m, int64_t depth, const W* a, int64_t stride, int64_t whole, int64_t first,
                W* bands) {
  for (int64_t i = 0; i < m; i += rows_a_band) {
    const int64_t rows = std::min(rows_a_band, m - i);
    W* const to = bands + i * whole + first * rows;
    if (rows == rows_a_band)  // memcpy() of a known size becomes vectors, where copy_n() becomes a call
      for (int64_t k = 0; k < depth; ++k)
        std::memcpy(to + k * rows_a_band, a + k * stride + i, sizeof(W) * rows_a_band);
    else
      for (int64_t k = 0; k < depth; ++k) std::copy_n(a + k * stride + i, rows, to + k * rows);
  }
}

namespace detail {

template <class W> inline constexpr std::array<W, panel_width<W>> zeros{};

// The last panel where n is not a multiple of the lanes: a few rows at a time, in a block of memory of their
// own.
template <class W>
void ragged_panel(int64_t m, int64_t columns, int64_t depth, Strided<W> a, const W* panel,
                  Rows<const W> start, Rows<W> c) {
  constexpr int64_t width = panel_width<W>, rows_a_block = 12;
  std::array<W, width * rows_a_block> block{};
  const Rows<W> in_block{block.data(), width};
  for (int64_t i = 0; i < m; i += rows_a_block) {
    const int64_t rows = std::min(rows_a_block, m - i);
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(start.data + (i + r) * start.row, columns, block.data() + r * width);
    small_gemm<W>(rows, width, depth, {a.data + i * a.row, a.row, a.column}, {panel, width}, in_block,
                  in_block);
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(block.data() + r * width, columns, c.data + (i + r) * c.row);
  }
}

// C [m, n] = start + A B, the parts of the depth one after another, of each the panels of B, and of each
// `most_rows` rows of A at a time. left(i, rows, k) is the block of A that begins at row i and column k.
template <class W, class Left>
void by_panels(int64_t m, int64_t n, int64_t depth, int64_t most_rows, int64_t most_depth, const Left& left,
               const W* panels, Rows<const W> start, Rows<W> c) {
  constexpr int64_t width = panel_width<W>;
  const auto multiply = [=](int64_t j, int64_t k, int64_t i, int64_t rows, Rows<const W> from) {
    const int64_t some = std::min(most_depth, depth - k), columns = std::min(width, n - j);
    const W* const panel = panels + j * depth + k * width;
    const Rows<W> to{c.data + i * c.row + j, c.row};
    if (columns % lanes<W> == 0)
      small_gemm<W, true>(rows, columns, some, left(i, rows, k), {panel, width}, from, to);
    else
      ragged_panel<W>(rows, columns, some, left(i, rows, k), panel, from, to);
  };
  for (int64_t k = 0; k < depth || k == 0; k += most_depth)
    for (int64_t j = 0; j < n; j += width) {
      const Rows<const W> from = k > 0        ? Rows<const W>{c.data + j, c.row}
                                 : start.data ? Rows<const W>{start.data + j, start.row}
                                              : Rows<const W>{zeros<W>.data(), 0};
      for (int64_t i = 0; i < m; i += most_rows)
        multiply(j, k, i, std::min(most_rows, m - i), {from.data + i * from.row, from.row});
    }
}

}  // namespace detail

// C [m, n] = start + A [m, depth] B, B [depth, n] packed panel after panel. `start` may be C itself (to add),
// one row for all (stride 0), or null (zero).
template <class W>
void panel_gemm(int64_t m, int64_t n, int64_t depth, Strided<W> a, const W* panels, Rows<const W> start,
                Rows<W> c) {
  constexpr int64_t most_depth = 768;  // a block of A of this depth stays in the second cache
  const auto left = [=](int64_t, int64_t, int64_t k) {
    return Strided<W>{a.data + k * a.column, a.row, a.column};
  };
  detail::by_panels<W>(m, n, depth, m, most_depth, left, panels, start, c);
}

// C [m, n] = start + A [m, depth] B as panel_gemm() computes it, for an A that pack_bands() packed.
template <class W>
void band_gemm(int64_t m, int64_t n, int64_t depth, const W* bands, const W* panels, Rows<const W> start,
               Rows<W> c) {
  constexpr int64_t most_depth = 256;  // a band and a panel of this depth stay in the first cache
  const auto left = [=](int64_t i, int64_t rows, int64_t k) {
    return Strided<W>{bands + i * depth + k * rows, 1, rows};
  };
  detail::by_panels<W>(m, n, depth, rows_a_band, most_depth, left, panels, start, c);
}

}  // namespace tessera
