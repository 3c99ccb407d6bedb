// Compiled for AVX-512-BF16 whatever the rest is compiled for, as bf16_gemm_avx512_cpu.cpp: how its factors
// are packed into pairs.

#include "engine/cpu/bf16_gemm.h"

#ifdef __AVX512BF16__

#include <immintrin.h>

#include <algorithm>

#include "engine/cpu/bf16_gemm_x86.h"

namespace tessera {

namespace {

// Up to 16 numbers each of two rows as pairs; `second` may be null for zeros.
__m512i pairs_of_rows(const bf16* first, const bf16* second, __mmask16 wanted) {
  const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(wanted, first));
  if (!second) return low;
  const __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(wanted, second));
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

// Prefetches two rows that are read later. A few columns of rows that lie apart are lines which the processor
// does not prefetch by itself.
void prefetch_rows(const bf16* first, int64_t columns, int64_t stride) {
  constexpr int64_t ahead = 32;
  for (int64_t j = 0; j < columns; j += bf16_panel) {
    _mm_prefetch(first + ahead * stride + j, _MM_HINT_T0);
    _mm_prefetch(first + (ahead + 1) * stride + j, _MM_HINT_T0);
  }
}

// Turns the squares of 4 x 4 pairs, one a quarter of a vector, that each four of these n vectors hold.
template <int n> inline __attribute__((always_inline)) void transpose_quarters(__m512i* x) {
  __m512i y[n];
#pragma GCC unroll 16
  for (int i = 0; i < n; i += 2) {
    y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < n; i += 4) {
    x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
    x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
    x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
    x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
  }
}

// Turns the 16 x 16 pairs of these vectors by perfect shuffles of doublewords, quadwords and quarters. It is
// inlined and its loops unrolled, so that the vectors stay in registers.
inline __attribute__((always_inline)) void transpose(__m512i* x) {
  __m512i y[16];
  transpose_quarters<16>(x);
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {  // x[4 r + i] holds columns i, 4 + i, 8 + i, 12 + i of rows 4 r to 4 r + 3
    const __m512i a = _mm512_shuffle_i32x4(x[i], x[4 + i], 0x88),
                  b = _mm512_shuffle_i32x4(x[i], x[4 + i], 0xdd),
                  c = _mm512_shuffle_i32x4(x[8 + i], x[12 + i], 0x88),
                  d = _mm512_shuffle_i32x4(x[8 + i], x[12 + i], 0xdd);
    y[i] = _mm512_shuffle_i32x4(a, c, 0x88);
    y[4 + i] = _mm512_shuffle_i32x4(b, d, 0x88);
    y[8 + i] = _mm512_shuffle_i32x4(a, c, 0xdd);
    y[12 + i] = _mm512_shuffle_i32x4(b, d, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) x[i] = y[i];
}

// Writes the transpose of 16 columns of 32 numbers, which lie `stride` apart. to [16 pairs, 16 columns]
void interleave_square(const bf16* from, int64_t stride, bf16* to, int64_t pair) {
  __m512i square[16];
#pragma GCC unroll 16
  for (int64_t i = 0; i < 16; ++i) square[i] = _mm512_loadu_si512(from + i * stride);
  transpose(square);
#pragma GCC unroll 16
  for (int64_t i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * pair, square[i]);
}

// interleave_part() does the same where there are fewer columns than 16 or fewer numbers than 32.
void interleave_part(int64_t numbers, int64_t columns, const bf16* from, int64_t stride, bf16* to,
                     int64_t pair) {
  const __mmask32 wanted = numbers >= bf16_panel ? 0xffffffffu : (1u << numbers) - 1;
  __m512i square[16];
  for (int64_t i = 0; i < 16; ++i)
    square[i] = i < columns ? _mm512_maskz_loadu_epi16(wanted, from + i * stride) : _mm512_setzero_si512();
  transpose(square);
  for (int64_t i = 0; i < std::min<int64_t>(16, pairs_of(numbers)); ++i)
    _mm512_storeu_si512(to + i * pair, square[i]);
}

// interleave_transposed() for a depth of at most 16: columns i and i + 4 share a vector, half the shuffles.
void interleave_few_transposed(int64_t depth, int64_t columns, const bf16* from, int64_t stride, bf16* to,
                               int64_t pair) {
  const __mmask16 wanted = first_lanes(depth);
  for (int64_t j = 0; j < columns; j += bf16_lanes) {
    const auto column = [&](int64_t i) {
      return j + i < columns ? _mm256_maskz_loadu_epi16(wanted, from + (j + i) * stride)
                             : _mm256_setzero_si256();
    };
    __m512i x[8];
    for (int64_t i = 0; i < 8; ++i) {
      const int64_t first = i / 4 * 8 + i % 4;
      x[i] = _mm512_inserti64x4(_mm512_castsi256_si512(column(first)), column(first + 4), 1);
    }
    transpose_quarters<8>(x);  // quarters 0 and 2 of x[k] hold pair k, quarters 1 and 3 pair 4 + k
    for (int64_t k = 0; k < pairs_of(depth); ++k)
      _mm512_storeu_si512(to + k * pair + 2 * j, k < 4 ? _mm512_shuffle_i32x4(x[k], x[4 + k], 0x88)
                                                       : _mm512_shuffle_i32x4(x[k - 4], x[k], 0xdd));
  }
}

// turn_panel() writes the transpose of 32 x 32 numbers; the rows of `from` lie `stride` apart, those of `to`
// lie `row` apart.
void turn_panel(const bf16* from, int64_t stride, bf16* to, int64_t row) {
  alignas(64) bf16 pairs[16][2 * bf16_panel];
  for (int64_t p = 0; p < 16; ++p)
    interleave_panel(from + 2 * p * stride, from + (2 * p + 1) * stride, pairs[p]);
  for (int64_t half = 0; half < 2; ++half, to += 16 * row) {
    __m512i square[16];
#pragma GCC unroll 16
    for (int64_t p = 0; p < 16; ++p) square[p] = _mm512_load_si512(pairs[p] + half * bf16_panel);
    transpose(square);
#pragma GCC unroll 16
    for (int64_t r = 0; r < 16; ++r) _mm512_storeu_si512(to + r * row, square[r]);
  }
}

// turn_part() does the same for 16 columns or fewer, of up to 32 numbers; zeros follow these.
void turn_part(int64_t numbers, int64_t columns, const bf16* from, int64_t stride, bf16* to, int64_t row) {
  __m512i square[16];
  for (int64_t p = 0; p < 16; ++p, from += 2 * stride)
    square[p] = 2 * p < numbers
                    ? pairs_of_rows(from, 2 * p + 1 < numbers ? from + stride : nullptr, first_lanes(columns))
                    : _mm512_setzero_si512();
  transpose(square);
  for (int64_t r = 0; r < 16; ++r) _mm512_storeu_si512(to + r * row, square[r]);
}

}  // namespace

void interleave_pairs(int64_t depth, int64_t columns, const bf16* from, int64_t stride, bf16* to,
                      int64_t pair) {
  const bool apart = stride > columns && columns <= 4 * bf16_panel;
  for (int64_t k = 0; k < depth; k += 2, to += pair) {
    const bf16 *first = from + k * stride, *second = k + 1 < depth ? first + stride : nullptr;
    if (apart) prefetch_rows(first, columns, stride);
    int64_t j = 0;
    for (; second && j + bf16_panel <= columns; j += bf16_panel)
      interleave_panel(first + j, second + j, to + 2 * j);
    for (; j < columns; j += bf16_lanes)
      _mm512_storeu_si512(to + 2 * j,
                          pairs_of_rows(first + j, second ? second + j : nullptr, first_lanes(columns - j)));
  }
}

void interleave_transposed_pairs(int64_t depth, int64_t columns, const bf16* from, int64_t stride, bf16* to,
                                 int64_t pair) {
  if (depth <= bf16_lanes) return interleave_few_transposed(depth, columns, from, stride, to, pair);
  for (int64_t j = 0; j < columns; j += bf16_lanes)
    for (int64_t k = 0; k < depth; k += bf16_panel) {
      const bf16* at = from + j * stride + k;
      bf16* square = to + k / 2 * pair + 2 * j;
      for (int64_t i = 0; i < 16; ++i)  // the same numbers of the next columns, which lie as far apart
        _mm_prefetch(at + (bf16_lanes + i) * stride, _MM_HINT_T0);
      if (j + bf16_lanes <= columns && k + bf16_panel <= depth)
        interleave_square(at, stride, square, pair);
      else
        interleave_part(depth - k, columns - j, at, stride, square, pair);
    }
}

LeftPairs left_pairs_of_transposed(int64_t depth, int64_t m, const bf16* from, int64_t stride, bf16* to) {
  const int64_t pair = 2 * whole_bf16_vectors(m);
  interleave_pairs(depth, m, from, stride, to, pair);
  return {to, 2, pair};
}

LeftPairs left_rows_of_transposed(int64_t depth, int64_t m, const bf16* from, int64_t stride, bf16* to) {
  const int64_t row = 2 * whole_bf16_vectors(pairs_of(depth)), whole_m = m / bf16_panel * bf16_panel;
  for (int64_t k = 0; k < row; k += bf16_panel) {
    const bf16* rows = from + k * stride;
    const int64_t numbers = depth - k;
    int64_t i = 0;
    for (; numbers >= bf16_panel && i < whole_m; i += bf16_panel)
      turn_panel(rows + i, stride, to + i * row + k, row);
    for (; i < m; i += bf16_lanes) turn_part(numbers, m - i, rows + i, stride, to + i * row + k, row);
  }
  return {to, row, 2};
}

}  // namespace tessera

#endif
