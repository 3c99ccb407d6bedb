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

template <class Rows> Rows from(Rows rows, int64_t i, int64_t j) {
  return {rows.data ? rows.data + i * rows.row + j : nullptr, rows.row};
}

// c [rows, 16] = start + alpha sum
void store_tile(int64_t rows, const float* sum, float alpha, FloatRows start, FloatTarget c) {
  for (int64_t r = 0; r < rows; ++r) {
    const __m512 added = start.data ? _mm512_loadu_ps(start.data + r * start.row) : _mm512_setzero_ps();
    _mm512_storeu_ps(c.data + r * c.row,
                     _mm512_fmadd_ps(_mm512_set1_ps(alpha), _mm512_load_ps(sum + r * side), added));
  }
}

// C of one or two tiles down and across, of `rows` rows each: tiles 0 to 3 hold the sums, 4 and 5 A's, 6 and
// 7 B's.
template <bool tall, bool wide>
void multiply_tiles(int64_t rows, int64_t pairs, LeftPairs a, RightPairs b, float alpha, FloatRows start,
                    FloatTarget c) {
  const auto a_bytes = static_cast<int>(a.row * 2), b_bytes = static_cast<int>(b.pair * 2);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t k = 0; k < pairs; k += side) {
    const bf16 *left = a.data + 2 * k, *right = b.data + k * b.pair;
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
  alignas(64) float sums[4][side * side];
  constexpr int row_bytes = side * 4;
  _tile_stored(0, sums[0], row_bytes);
  _tile_stored(1, sums[1], row_bytes);
  _tile_stored(2, sums[2], row_bytes);
  _tile_stored(3, sums[3], row_bytes);
  for (int64_t t = 0; t < 4; ++t)
    if ((tall || t < 2) && (wide || t % 2 == 0))
      store_tile(rows, sums[t], alpha, from(start, t / 2 * side, t % 2 * side),
                 from(c, t / 2 * side, t % 2 * side));
}

// All columns of C, whose tiles have `rows` rows; two tiles down where it is tall.
void multiply_across(bool tall, int64_t rows, int64_t columns, int64_t pairs, LeftPairs a, RightPairs b,
                     float alpha, FloatRows start, FloatTarget c) {
  for (int64_t j = 0; j < columns; j += 2 * side) {
    const bool wide = columns - j > side;
    const auto tiles = tall ? (wide ? multiply_tiles<true, true> : multiply_tiles<true, false>)
                            : (wide ? multiply_tiles<false, true> : multiply_tiles<false, false>);
    tiles(rows, pairs, a, {b.data + 2 * j, b.pair}, alpha, from(start, 0, j), from(c, 0, j));
  }
}

void multiply(int64_t m, int64_t columns, int64_t pairs, const LeftPairs& a, RightPairs b, float alpha,
              FloatRows start, FloatTarget c) {
  if (a.parts > 1) {  // a tile spans 16 pairs of one part
    const int64_t length = pairs / a.parts;
    for (int64_t p = 0; p < a.parts; ++p)
      multiply(m, columns, length, {a.data + p * a.part, a.row, a.pair},
               {b.data + p * length * b.pair, b.pair}, alpha, p == 0 ? start : FloatRows(c), c);
    return;
  }
  const auto& plain = *avx512_bf16_kernels();
  const int64_t whole_m = m / side * side, whole_pairs = pairs / side * side;
  if (a.pair != 2 || whole_pairs == 0) return plain.multiply(m, columns, pairs, a, b, alpha, start, c);
  if (whole_m > 0) {
    configure(TileShapes(side));
    for (int64_t i = 0; i < whole_m; i += 2 * side)
      multiply_across(whole_m - i > side, side, columns, whole_pairs, {a.data + i * a.row, a.row, 2}, b,
                      alpha, from(start, i, 0), from(c, i, 0));
  }
  // Tiles multiply what is left of the rows, too: a row's bits would depend on the rows beside it otherwise.
  if (whole_m < m) {
    configure(TileShapes(m - whole_m));
    multiply_across(false, m - whole_m, columns, whole_pairs, {a.data + whole_m * a.row, a.row, 2}, b, alpha,
                    from(start, whole_m, 0), from(c, whole_m, 0));
  }
  _tile_release();
  if (whole_pairs < pairs)
    plain.multiply(m, columns, pairs - whole_pairs, {a.data + 2 * whole_pairs, a.row, 2},
                   {b.data + whole_pairs * b.pair, b.pair}, alpha, c, c);
}

}  // namespace

const Bf16Kernels* amx_bf16_kernels() {
  static const Bf16Kernels kernels = [] {
    Bf16Kernels k = *avx512_bf16_kernels();
    k.name = "AMX-BF16";
    k.multiply = multiply;
    k.multiply_rounded = nullptr;  // tiles are stored as floats
    k.left_of_transposed = left_rows_of_transposed;
    k.probabilities = nullptr;
    k.score_gradients = nullptr;
    k.pixels_to_points = nullptr;  // tiles multiply eight times as fast, and the additions do not
    k.outputs_of_points = nullptr;
    return k;
  }();
  return &kernels;
}

}  // namespace tessera

#else

const tessera::Bf16Kernels* tessera::amx_bf16_kernels() { return nullptr; }

#endif
