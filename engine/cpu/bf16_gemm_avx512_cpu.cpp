// Compiled for AVX-512-BF16 whatever the rest is compiled for: it includes no inline function that the linker
// could take for others' use, and nothing calls it on a processor without these instructions.

#include "engine/cpu/bf16_gemm.h"

#ifdef __AVX512BF16__

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/cpu/bf16_gemm_x86.h"

namespace tessera {

namespace {

int32_t pair_at(const bf16* from) {
  int32_t pair;
  __builtin_memcpy(&pair, from, sizeof pair);
  return pair;
}

// C [R, N vectors] = start + alpha A B. A block of sums stays in registers over the whole depth.
template <int R, int N>
void multiply_block(int64_t pairs, LeftPairs from, RightPairs b, float alpha, FloatRows start,
                    FloatTarget c) {
  __m512 sum[R * N];
#pragma GCC unroll 32
  for (int i = 0; i < R * N; ++i) sum[i] = _mm512_setzero_ps();
  const bf16* right = b.data;
  const int64_t a_pair = from.pair, length = pairs / from.parts;
  const std::array<int64_t, 4> row{0, from.row, 2 * from.row, 3 * from.row};
  for (int64_t part = 0; part < from.parts; ++part) {
    const bf16* a[(R + 3) / 4];  // rows 0, 4, 8: a register for each row would be too many
#pragma GCC unroll 32
    for (int i = 0; i < R; i += 4) a[i / 4] = from.data + part * from.part + i * from.row;
    for (int64_t k = 0; k < length; ++k, right += b.pair) {
      __m512i b_row[N];
#pragma GCC unroll 32
      for (int n = 0; n < N; ++n) b_row[n] = _mm512_loadu_si512(right + 2 * bf16_lanes * n);
#pragma GCC unroll 32
      for (int i = 0; i < R * N; ++i)
        sum[i] = _mm512_dpbf16_ps(
            sum[i], (__m512bh)_mm512_set1_epi32(pair_at(a[i / N / 4] + row[static_cast<size_t>(i / N % 4)])),
            (__m512bh)b_row[i % N]);
#pragma GCC unroll 32
      for (int i = 0; i < R; i += 4) a[i / 4] += a_pair;
    }
  }
  const __m512 factor = _mm512_set1_ps(alpha);
#pragma GCC unroll 32
  for (int i = 0; i < R * N; ++i) {
    const __m512 before = start.data ? _mm512_loadu_ps(start.data + i / N * start.row + i % N * bf16_lanes)
                                     : _mm512_setzero_ps();
    _mm512_storeu_ps(c.data + i / N * c.row + i % N * bf16_lanes, _mm512_fmadd_ps(factor, sum[i], before));
  }
}

using Block = void (*)(int64_t, LeftPairs, RightPairs, float, FloatRows, FloatTarget);

constexpr int64_t most_vectors = 5;
constexpr int most_rows(int vectors) { return vectors < 3 ? 12 : 31 / vectors - 1; }
constexpr int64_t pieces(int64_t n, int64_t most) { return (n + most - 1) / most; }

template <class Rows> Rows from(Rows rows, int64_t i, int64_t j) {
  return {rows.data ? rows.data + i * rows.row + j : nullptr, rows.row};
}

template <int N, int... r>
constexpr std::array<Block, sizeof...(r)> blocks(std::integer_sequence<int, r...>) {
  return {multiply_block<r + 1, N>...};
}

// The rows of C in blocks of nearly equal height.
template <int N>
void multiply_columns(int64_t m, int64_t pairs, LeftPairs a, RightPairs b, float alpha, FloatRows start,
                      FloatTarget c) {
  static constexpr auto of_rows = blocks<N>(std::make_integer_sequence<int, most_rows(N)>());
  int64_t i = 0;
  for (int64_t left = pieces(m, most_rows(N)); left > 0; --left) {
    const int64_t rows = pieces(m - i, left);
    of_rows[static_cast<size_t>(rows - 1)](pairs, a, b, alpha, from(start, i, 0), from(c, i, 0));
    a.data += rows * a.row;
    i += rows;
  }
}

void multiply(int64_t m, int64_t columns, int64_t pairs, LeftPairs a, RightPairs b, float alpha,
              FloatRows start, FloatTarget c) {
  static constexpr std::array of_vectors{multiply_columns<1>, multiply_columns<2>, multiply_columns<3>,
                                         multiply_columns<4>, multiply_columns<5>};
  int64_t vectors = columns / bf16_lanes, j = 0;
  for (int64_t left = pieces(vectors, most_vectors); left > 0; --left) {
    const int64_t width = pieces(vectors, left);
    of_vectors[static_cast<size_t>(width - 1)](m, pairs, a, {b.data + 2 * j, b.pair}, alpha,
                                               from(start, 0, j), from(c, 0, j));
    j += width * bf16_lanes;
    vectors -= width;
  }
}

// Up to 16 numbers each of two rows as pairs; `second` may be null for zeros.
__m512i pairs_of_rows(const bf16* first, const bf16* second, __mmask16 wanted) {
  const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(wanted, first));
  if (!second) return low;
  const __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(wanted, second));
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

__mmask16 first_lanes(int64_t n) {
  return static_cast<__mmask16>(n >= bf16_lanes ? 0xffff : n <= 0 ? 0 : (1 << n) - 1);
}

// As pairs_of_rows() for 32 whole columns: to = first[0], second[0], first[1], ...
void interleave_panel(const bf16* first, const bf16* second, bf16* to) {
  const __m512i in_order =  // word i of the result is first[i / 2] or, 32 words on, second[i / 2]
      _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5, 36,
                       4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i a = _mm512_loadu_si512(first), b = _mm512_loadu_si512(second);
  const __m512i later = _mm512_add_epi16(in_order, _mm512_set1_epi16(bf16_lanes));
  _mm512_storeu_si512(to, _mm512_permutex2var_epi16(a, in_order, b));
  _mm512_storeu_si512(to + bf16_panel, _mm512_permutex2var_epi16(a, later, b));
}

void interleave(int64_t depth, int64_t columns, const bf16* from, int64_t stride, bf16* to, int64_t pair) {
  for (int64_t k = 0; k < depth; k += 2, to += pair) {
    const bf16 *first = from + k * stride, *second = k + 1 < depth ? first + stride : nullptr;
    int64_t j = 0;
    for (; second && j + bf16_panel <= columns; j += bf16_panel)
      interleave_panel(first + j, second + j, to + 2 * j);
    for (; j < columns; j += bf16_lanes)
      _mm512_storeu_si512(to + 2 * j,
                          pairs_of_rows(first + j, second ? second + j : nullptr, first_lanes(columns - j)));
  }
}

// Turns the squares of 4 x 4 pairs, one a quarter of a vector, that each four of these n vectors hold.
template <int n> void transpose_quarters(__m512i* x) {
  __m512i y[n];
  for (int i = 0; i < n; i += 2) {
    y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
  }
  for (int i = 0; i < n; i += 4) {
    x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
    x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
    x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
    x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
  }
}

// The 16 x 16 pairs of these vectors turned, by perfect shuffles of doublewords, quadwords and quarters.
void transpose(__m512i* x) {
  __m512i y[16];
  transpose_quarters<16>(x);
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
  for (int i = 0; i < 16; ++i) x[i] = y[i];
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

void interleave_transposed(int64_t depth, int64_t columns, const bf16* from, int64_t stride, bf16* to,
                           int64_t pair) {
  if (depth <= bf16_lanes) return interleave_few_transposed(depth, columns, from, stride, to, pair);
  const int64_t pairs = pairs_of(depth);
  for (int64_t j = 0; j < columns; j += bf16_lanes)
    for (int64_t k = 0; k < pairs; k += 16) {
      const int64_t numbers = depth - 2 * k;
      const __mmask32 wanted = numbers >= 32 ? 0xffffffffu : (1u << numbers) - 1;
      __m512i square[16];
      for (int64_t i = 0; i < 16; ++i)
        square[i] = j + i < columns ? _mm512_maskz_loadu_epi16(wanted, from + (j + i) * stride + 2 * k)
                                    : _mm512_setzero_si512();
      transpose(square);
      for (int64_t i = 0; i < std::min<int64_t>(16, pairs - k); ++i)
        _mm512_storeu_si512(to + (k + i) * pair + 2 * j, square[i]);
    }
}

LeftPairs left_of_transposed(int64_t depth, int64_t m, const bf16* from, int64_t stride, bf16* to) {
  const int64_t pair = 2 * whole_bf16_vectors(m);
  interleave(depth, m, from, stride, to, pair);
  return {to, 2, pair};
}

__m512 widened(__m256i numbers) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(numbers), 16));
}

// 16 numbers of a row without masks, whose stores are slow on some processors.
void store_vector(const float* from, __m512 factor, bool add, bf16* to) {
  __m512 value = _mm512_mul_ps(factor, _mm512_loadu_ps(from));
  if (add) value = _mm512_add_ps(value, widened(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(to))));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), (__m256i)_mm512_cvtneps_pbh(value));
}

// As store_vector() for 32.
void store_panel(const float* from, __m512 factor, bool add, bf16* to) {
  __m512 low = _mm512_mul_ps(factor, _mm512_loadu_ps(from)),
         high = _mm512_mul_ps(factor, _mm512_loadu_ps(from + bf16_lanes));
  if (add) {
    const __m512i before = _mm512_loadu_si512(to);
    low = _mm512_add_ps(low, widened(_mm512_castsi512_si256(before)));
    high = _mm512_add_ps(high, widened(_mm512_extracti64x4_epi64(before, 1)));
  }
  _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

void store(int64_t rows, int64_t columns, FloatRows from, const float* factors, int64_t step, bool add,
           bf16* to, int64_t stride) {
  if (columns == bf16_lanes) {  // attention's heads, whose rows are too short for the loops below
    for (int64_t i = 0; i < rows; ++i, to += stride)
      store_vector(from.data + i * from.row, _mm512_set1_ps(factors[i * step]), add, to);
    return;
  }
  for (int64_t i = 0; i < rows; ++i, to += stride) {
    const __m512 factor = _mm512_set1_ps(factors[i * step]);
    const float* row = from.data + i * from.row;
    int64_t j = 0;
    for (; j + bf16_panel <= columns; j += bf16_panel) store_panel(row + j, factor, add, to + j);
    for (; j + bf16_lanes <= columns; j += bf16_lanes) store_vector(row + j, factor, add, to + j);
    if (j < columns) {
      const __mmask16 wanted = first_lanes(columns - j);
      __m512 value = _mm512_mul_ps(factor, _mm512_maskz_loadu_ps(wanted, row + j));
      if (add) value = _mm512_add_ps(value, widened(_mm256_maskz_loadu_epi16(wanted, to + j)));
      _mm256_mask_storeu_epi16(to + j, wanted, (__m256i)_mm512_cvtneps_pbh(value));
    }
  }
}

}  // namespace

LeftPairs left_rows_of_transposed(int64_t depth, int64_t m, const bf16* from, int64_t stride, bf16* to) {
  const int64_t row = 2 * whole_bf16_vectors(pairs_of(depth));
  for (int64_t i = 0; i < m; i += bf16_lanes)
    for (int64_t k = 0; 2 * k < row; k += 16) {
      __m512i square[16];
      for (int64_t p = 0; p < 16; ++p) {
        const int64_t at = 2 * (k + p);
        const bf16* first = from + at * stride + i;
        square[p] = at < depth
                        ? pairs_of_rows(first, at + 1 < depth ? first + stride : nullptr, first_lanes(m - i))
                        : _mm512_setzero_si512();
      }
      transpose(square);
      for (int64_t r = 0; r < 16; ++r) _mm512_storeu_si512(to + (i + r) * row + 2 * k, square[r]);
    }
  return {to, row, 2};
}

const Bf16Kernels* avx512_bf16_kernels() {
  static constexpr Bf16Kernels kernels{"AVX-512-BF16",        multiply,           interleave,
                                       interleave_transposed, left_of_transposed, store};
  return &kernels;
}

}  // namespace tessera

#else

const tessera::Bf16Kernels* tessera::avx512_bf16_kernels() { return nullptr; }

#endif
