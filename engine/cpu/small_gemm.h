#pragma once

// Matrix products on one core for matrices that fit its caches and are too thin for BLAS to be fast:
// attention's, whose depth or width is a head's, 16 to 64. A block of the result stays in registers over the
// whole depth; the left matrix is broadcast number by number, so it may be transposed in memory.

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "engine/cpu/lines_ahead.h"
#include "engine/cpu/next_row.h"
#include "engine/cpu/sanitizer.h"
#include "engine/cpu/simd.h"

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
  operator Rows<const W>() const { return {data, row}; }
};

namespace detail {

// C [R blocks, N vectors] = start + A B by blocks of R rows, each all in registers: every loop but those over
// the blocks and the depth is unrolled. A `far` C lies outside the first cache: its lines are asked for first
// and come while the sums are made, where the stores would wait for them. A's pointer and strides are single
// arguments because a struct of three passes through memory, where each call would wait for the last one's C;
// structs of two pass in registers. Each block asks for some of the lines `ahead`, unless null.
template <class W, int R, int N, bool far>
TESSERA_UNSEEN void gemm_rows(int64_t blocks, int64_t depth, const W* a, int64_t a_row, int64_t a_column,
                              Rows<const W> b, Rows<const W> start, Rows<W> c, LinesAhead* ahead) {
  constexpr int vectors_a_line = std::max<int>(1, 64 / vector_bytes);
  using Loaded = const typename VectorOf<W>::unaligned*;  // load_vector() is seen by the sanitizers
  for (; blocks > 0; --blocks) {
    if (ahead) ahead->ask();
    if constexpr (far) {
      const W* to = c.data;
#pragma GCC unroll 32
      for (int i = 0; i < R; ++i, advance(to, c.row))
#pragma GCC unroll 32
        for (int n = 0; n < N; n += vectors_a_line) __builtin_prefetch(to + n * lanes<W>, 1);
    }
    Vector<W> sum[R * N];
#pragma GCC unroll 32
    for (int i = 0; i < R; ++i, advance(start.data, start.row))
#pragma GCC unroll 32
      for (int n = 0; n < N; ++n) sum[i * N + n] = *reinterpret_cast<Loaded>(start.data + n * lanes<W>);
    // A pointer goes with rows 0, 4 and 8 of A, and the three rows after each are found from it: one for
    // every row would be more than the registers hold, and be read from memory for every number of the depth.
    const W* left[(R + 3) / 4];
#pragma GCC unroll 32
    for (int i = 0; i < R; i += 4) left[i / 4] = a + i * a_row;
    const W* right = b.data;
// Four numbers of the depth a turn: a core whose other thread is busy is slow at jumps.
#pragma GCC unroll 4
    for (int64_t k = 0; k < depth; ++k, right += b.row) {
      Vector<W> b_row[N];
#pragma GCC unroll 32
      for (int n = 0; n < N; ++n) b_row[n] = *reinterpret_cast<Loaded>(right + n * lanes<W>);
#pragma GCC unroll 32
      for (int i = 0; i < R * N; ++i) sum[i] += left[i / N / 4][i / N % 4 * a_row] * b_row[i % N];
#pragma GCC unroll 32
      for (int i = 0; i < R; i += 4) left[i / 4] += a_column;
    }
    a += R * a_row;
#pragma GCC unroll 32
    for (int i = 0; i < R; ++i, advance(c.data, c.row))
#pragma GCC unroll 32
      for (int n = 0; n < N; ++n)
        *reinterpret_cast<typename VectorOf<W>::unaligned*>(c.data + n * lanes<W>) = sum[i * N + n];
  }
}

// The least number of pieces of size at most `most` that make n; or the largest of `most` nearly equal
// pieces.
constexpr int64_t pieces(int64_t n, int64_t most) {
  return static_cast<int32_t>(n + most - 1) / static_cast<int32_t>(most);
}

// N registers hold a row of B, one holds a number of A, the others the block of C. A sixth vector would cost
// a sixth of the speed in f32 and two thirds in f64.
inline constexpr int most_vectors = vector_registers == 32 ? 5 : 3;
constexpr int most_rows(int vectors) { return std::min(12, (vector_registers - 1 - vectors) / vectors); }

template <class W>
using GemmRows = void (*)(int64_t, int64_t, const W*, int64_t, int64_t, Rows<const W>, Rows<const W>, Rows<W>,
                          LinesAhead*);

template <class W, int N, bool far, int... r>
constexpr std::array<GemmRows<W>, sizeof...(r)> gemm_heights(std::integer_sequence<int, r...>) {
  return {gemm_rows<W, r + 1, N, far>...};
}

// The rows of C in blocks of nearly equal height that fit the registers: the higher ones first.
template <class W, int N, bool far>
void gemm_columns(int64_t m, int64_t depth, Strided<W> a, Rows<const W> b, Rows<const W> start, Rows<W> c,
                  LinesAhead* ahead) {
  static constexpr auto heights = gemm_heights<W, N, far>(std::make_integer_sequence<int, most_rows(N)>());
  if (m == 0) return;
  const int64_t blocks = pieces(m, most_rows(N)), height = pieces(m, blocks);
  const int64_t lower = height * blocks - m, higher = blocks - lower, rows = higher * height;
  heights[static_cast<size_t>(height - 1)](higher, depth, a.data, a.row, a.column, b, start, c, ahead);
  if (lower == 0) return;
  heights[static_cast<size_t>(height - 2)](lower, depth, a.data + rows * a.row, a.row, a.column, b,
                                           {start.data + rows * start.row, start.row},
                                           {c.data + rows * c.row, c.row}, ahead);
}

template <class W, bool far, int... n> constexpr auto gemm_panels(std::integer_sequence<int, n...>) {
  return std::array{gemm_columns<W, n + 1, far>...};
}

}  // namespace detail

// C [m, n] = start + A [m, depth] B [depth, n], n a multiple of the lanes. `start` may be C itself (to add)
// or one row for all (stride 0). The columns are divided into panels of nearly equal width. `far` tells that
// the caches do not hold C, and each block of C in registers asks for some of the lines `ahead`, unless null;
// both change the time alone.
template <class W, bool far = false>
void small_gemm(int64_t m, int64_t n, int64_t depth, Strided<W> a, Rows<const W> b, Rows<const W> start,
                Rows<W> c, LinesAhead* ahead = nullptr) {
  static constexpr auto panels =
      detail::gemm_panels<W, far>(std::make_integer_sequence<int, detail::most_vectors>());
  tell_sanitizer(a.data, m, depth, a.row, a.column);
  tell_sanitizer(b.data, depth, n, b.row, 1);
  tell_sanitizer(start.data, start.row == 0 ? 1 : m, n, start.row, 1);
  tell_sanitizer(c.data, m, n, c.row, 1);
  int64_t vectors = n / lanes<W>;
  for (int64_t left = detail::pieces(vectors, detail::most_vectors); left > 0; --left) {
    const int64_t width = detail::pieces(vectors, left);
    panels[static_cast<size_t>(width - 1)](m, depth, a, b, start, c, ahead);
    b.data += width * lanes<W>;
    start.data += width * lanes<W>;
    c.data += width * lanes<W>;
    vectors -= width;
  }
}

// The number of blocks in registers that small_gemm() makes of C [m, n].
template <class W> constexpr int64_t gemm_blocks(int64_t m, int64_t n) {
  const int64_t vectors = std::max<int64_t>(1, n / lanes<W>),
                panels = detail::pieces(vectors, detail::most_vectors),
                width = detail::pieces(vectors, panels);
  return panels * detail::pieces(m, detail::most_rows(static_cast<int>(width)));
}

}  // namespace tessera
