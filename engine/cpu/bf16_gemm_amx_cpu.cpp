// Compiled for AMX-BF16 whatever the rest is compiled for; see bf16_gemm_avx512_cpu.cpp, whose kernels
// multiply what does not fill a tile: every processor with AMX-BF16 has AVX-512-BF16.

#include "engine/cpu/bf16_gemm.h"

#if defined(__AMX_BF16__) && defined(__AMX_TILE__)

#include <immintrin.h>

#include <algorithm>

#include "engine/cpu/bf16_gemm_x86.h"

namespace tessera {

namespace {

constexpr int64_t side = 16;  // rows of a tile, pairs of its rows

// The shapes of the eight tiles as the processor reads them: their rows have 64 bytes. Those of B have 16
// rows, the others as many as C has at a time.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {};

  explicit TileShapes(int64_t rows_of_c) {
    std::fill_n(rows, 6, static_cast<uint8_t>(rows_of_c));
    std::fill_n(rows + 6, 2, static_cast<uint8_t>(side));
  }
};

// The empty statement lets no write wait until after it: GCC's intrinsics for tiles do not say what memory
// they read, neither the whole of `shapes` nor the rows of a tile.
void configure(const TileShapes& shapes) {
  asm volatile("" : : "r"(&shapes) : "memory");
  _tile_loadconfig(&shapes);
}

// The depth of a product as it is cut: each of its `parts` has `whole` pairs, which fill tiles, and then
// `rest` pairs, which vectors multiply.
struct Depth {
  int64_t parts, whole, rest;
  explicit Depth(int64_t pairs, int64_t count)
      : parts(count), whole(pairs / count / side * side), rest(pairs / count - whole) {}
};

template <class Rows> Rows from(Rows rows, int64_t i, int64_t j) {
  return {rows.data ? rows.data + i * rows.row + j : nullptr, rows.row};
}

// The sums of one or two tiles down and across: tiles 0 to 3 hold them, 4 and 5 A's rows, 6 and 7 B's.
template <bool tall, bool wide> struct Sums {
  static void begin(FloatRows start) {
    if (!start.data) {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
      return;
    }
    const float* below = start.data + side * start.row;
    const auto row_bytes = start.row * 4;  // 0 for one row that all begin with
    _tile_loadd(0, start.data, row_bytes);
    if constexpr (wide) _tile_loadd(1, start.data + side, row_bytes);
    if constexpr (tall) _tile_loadd(2, below, row_bytes);
    if constexpr (tall && wide) _tile_loadd(3, below + side, row_bytes);
  }

  static void add(const Depth& depth, const LeftPairs& a, RightPairs b) {
    const int64_t a_bytes = a.row * 2, b_bytes = b.pair * 2;
    for (int64_t part = 0; part < depth.parts; ++part) {
      const bf16* left = a.data + part * a.part;
      const bf16* right = b.data + part * (depth.whole + depth.rest) * b.pair;
      for (int64_t k = 0; k < depth.whole; k += side, left += 2 * side, right += side * b.pair) {
        _tile_loadd(4, left, a_bytes);
        _tile_loadd(6, right, b_bytes);
        _tile_dpbf16ps(0, 4, 6);
        if constexpr (wide) {
          _tile_loadd(7, right + 2 * side, b_bytes);
          _tile_dpbf16ps(1, 4, 7);
        }
        if constexpr (tall) {
          _tile_loadd(5, left + side * a.row, a_bytes);
          _tile_dpbf16ps(2, 5, 6);
          if constexpr (wide) _tile_dpbf16ps(3, 5, 7);
        }
      }
    }
  }

  static void put(FloatTarget c) {
    float* below = c.data + side * c.row;
    const auto row_bytes = c.row * 4;
    _tile_stored(0, c.data, row_bytes);
    if constexpr (wide) _tile_stored(1, c.data + side, row_bytes);
    if constexpr (tall) _tile_stored(2, below, row_bytes);
    if constexpr (tall && wide) _tile_stored(3, below + side, row_bytes);
  }
};

// The sums of a square of tiles, which are scaled or rounded before they go where they belong.
struct Square {
  alignas(64) float sums[2 * side * 2 * side];
  FloatTarget target() { return {sums, 2 * side}; }
  __m512 at(int64_t r, int64_t j) const { return _mm512_load_ps(sums + r * 2 * side + j); }
};

// C = start + A B
struct Plain {
  FloatRows start;
  FloatTarget c;

  FloatRows first(int64_t i, int64_t j) const { return from(start, i, j); }
  template <class Tiles> void put(int64_t i, int64_t j, int64_t, int64_t) const { Tiles::put(from(c, i, j)); }
};

// C = start + alpha A B
struct Scaled {
  float alpha;
  FloatRows start;
  FloatTarget c;

  static FloatRows first(int64_t, int64_t) { return {nullptr, 0}; }
  template <class Tiles> void put(int64_t i, int64_t j, int64_t rows, int64_t columns) const {
    Square square;
    Tiles::put(square.target());
    const FloatRows before = from(start, i, j);
    const FloatTarget to = from(c, i, j);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t n = 0; n < columns; n += side) {
        const __m512 added =
            before.data ? _mm512_loadu_ps(before.data + r * before.row + n) : _mm512_setzero_ps();
        _mm512_storeu_ps(to.data + r * to.row + n,
                         _mm512_fmadd_ps(_mm512_set1_ps(alpha), square.at(r, n), added));
      }
  }
};

// round_rows() rounds rows of one or two vectors; those of `to` begin `stride` numbers apart.
void round_rows(int64_t rows, int64_t columns, const Square& square, bf16* to, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r, to += stride)
    if (columns > side)
      _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(square.at(r, side), square.at(r, 0)));
    else
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), (__m256i)_mm512_cvtneps_pbh(square.at(r, 0)));
}

// c = start + A B, rounded
struct Rounded {
  FloatRows start;
  bf16* c;
  int64_t stride;

  FloatRows first(int64_t i, int64_t j) const { return from(start, i, j); }
  template <class Tiles> void put(int64_t i, int64_t j, int64_t rows, int64_t columns) const {
    Square square;
    Tiles::put(square.target());
    round_rows(rows, columns, square, c + i * stride + j, stride);
  }
};

// multiply_tiles() makes one or two tiles of C down and across, which begin at row i and column j and have
// `rows` rows in all.
template <bool tall, bool wide, class Output>
void multiply_tiles(int64_t i, int64_t j, int64_t rows, const Depth& depth, const LeftPairs& a, RightPairs b,
                    const Output& to) {
  using Tiles = Sums<tall, wide>;
  Tiles::begin(to.first(i, j));
  Tiles::add(depth, {a.data + i * a.row, a.row, 2, a.parts, a.part}, {b.data + 2 * j, b.pair});
  to.template put<Tiles>(i, j, rows, wide ? 2 * side : side);
}

// multiply_across() makes all columns of `rows` rows from row i on.
template <bool tall, class Output>
void multiply_across(int64_t i, int64_t rows, int64_t columns, const Depth& depth, const LeftPairs& a,
                     RightPairs b, const Output& to) {
  for (int64_t j = 0; j < columns; j += 2 * side) {
    const auto tiles =
        columns - j > side ? multiply_tiles<tall, true, Output> : multiply_tiles<tall, false, Output>;
    tiles(i, j, rows, depth, a, b, to);
  }
}

// multiply_whole() multiplies the whole tiles of the depth. Tiles multiply what is left of the rows, too: a
// row's bits would depend on the rows beside it otherwise.
template <class Output>
void multiply_whole(int64_t m, int64_t columns, const Depth& depth, const LeftPairs& a, RightPairs b,
                    const Output& to) {
  const int64_t whole_m = m / side * side;
  if (whole_m > 0) {
    configure(TileShapes(side));
    int64_t i = 0;
    for (; i + 2 * side <= whole_m; i += 2 * side)
      multiply_across<true>(i, 2 * side, columns, depth, a, b, to);
    if (i < whole_m) multiply_across<false>(i, side, columns, depth, a, b, to);
  }
  if (whole_m < m) {
    configure(TileShapes(m - whole_m));
    multiply_across<false>(whole_m, m - whole_m, columns, depth, a, b, to);
  }
  _tile_release();
}

// True where tiles multiply: pairs side by side, at least a tile of them.
bool fills_tiles(const Depth& depth, const LeftPairs& a) { return a.pair == 2 && depth.whole > 0; }

void multiply(int64_t m, int64_t columns, int64_t pairs, const LeftPairs& a, RightPairs b, float alpha,
              FloatRows start, FloatTarget c) {
  const auto& plain = *avx512_bf16_kernels();
  const Depth depth(pairs, a.parts);
  if (!fills_tiles(depth, a)) return plain.multiply(m, columns, pairs, a, b, alpha, start, c);
  if (alpha == 1)
    multiply_whole(m, columns, depth, a, b, Plain{start, c});
  else
    multiply_whole(m, columns, depth, a, b, Scaled{alpha, start, c});
  for (int64_t part = 0; part < depth.parts && depth.rest > 0; ++part) {
    const int64_t before = part * (depth.whole + depth.rest) + depth.whole;
    plain.multiply(m, columns, depth.rest, {a.data + part * a.part + 2 * depth.whole, a.row, 2},
                   {b.data + before * b.pair, b.pair}, alpha, c, c);
  }
}

void multiply_rounded(int64_t m, int64_t columns, int64_t pairs, const LeftPairs& a, RightPairs b,
                      FloatRows start, bf16* c, int64_t stride) {
  const Depth depth(pairs, a.parts);
  if (!fills_tiles(depth, a))
    return avx512_bf16_kernels()->multiply_rounded(m, columns, pairs, a, b, start, c, stride);
  if (depth.rest == 0) return multiply_whole(m, columns, depth, a, b, Rounded{start, c, stride});
  Square square;
  for (int64_t i = 0; i < m; i += 2 * side) {
    const int64_t rows = std::min(2 * side, m - i);
    multiply(rows, columns, pairs, {a.data + i * a.row, a.row, 2, a.parts, a.part}, b, 1, from(start, i, 0),
             square.target());
    round_rows(rows, columns, square, c + i * stride, stride);
  }
}

}  // namespace

const Bf16Kernels* amx_bf16_kernels() {
  static const Bf16Kernels kernels = [] {
    Bf16Kernels k = *avx512_bf16_kernels();
    k.name = "AMX-BF16";
    k.pairs_at_once = side;
    k.multiply = multiply;
    k.multiply_rounded = multiply_rounded;
    k.left_of_transposed = left_rows_of_transposed;
    k.most_row_width = 2 * side - 1;  // whose scores fill no tile's depth
    k.pixels_to_points = nullptr;     // tiles multiply eight times as fast, and the additions do not
    k.outputs_of_points = nullptr;
    return k;
  }();
  return &kernels;
}

}  // namespace tessera

#else

const tessera::Bf16Kernels* tessera::amx_bf16_kernels() { return nullptr; }

#endif
