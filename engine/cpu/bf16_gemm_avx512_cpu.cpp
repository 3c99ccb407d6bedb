// Compiled for AVX-512-BF16 whatever the rest is compiled for: it includes no inline function that the linker
// could take for others' use, and nothing calls it on a processor without these instructions.

#include "engine/cpu/bf16_gemm.h"

#ifdef __AVX512BF16__

#include <immintrin.h>

#include <array>
#include <limits>
#include <utility>

#include "engine/cpu/bf16_gemm_x86.h"
#include "engine/cpu/next_row.h"

namespace tessera {

namespace {

// Where a product is written, rounded to bf16 if that is its type.
template <class T> struct TargetRows {
  T* data;
  int64_t row;
};

// A row of N vectors of sums.
template <int N> void put(float* to, const __m512* sums) {
#pragma GCC unroll 32
  for (int n = 0; n < N; ++n) _mm512_storeu_ps(to + n * bf16_lanes, sums[n]);
}
template <int N> void put(bf16* to, const __m512* sums) {
  static_assert(N == 1 || N == 2, "a panel has two vectors");
  if constexpr (N == 2)
    _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(sums[1], sums[0]));
  else
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), (__m256i)_mm512_cvtneps_pbh(sums[0]));
}

// C [R, N vectors] = start + alpha A B. A block of sums stays in registers over the whole depth. A begins at
// `left` and lies as `from` says; what stays the same is not copied, for a copy would wait for the stores of
// the block before.
template <int R, int N, class T>
void multiply_block(int64_t pairs, const bf16* left, const LeftPairs& from, RightPairs b, float alpha,
                    FloatRows start, TargetRows<T> c) {
  __m512 sum[R * N];
#pragma GCC unroll 32
  for (int i = 0; i < R * N; ++i) sum[i] = _mm512_setzero_ps();
  const bf16* right = b.data;
  const int64_t a_pair = from.pair, length = pairs / from.parts;
  const std::array<int64_t, 4> row{0, from.row, 2 * from.row, 3 * from.row};
  for (int64_t part = 0; part < from.parts; ++part) {
    const bf16* a[(R + 3) / 4];  // rows 0, 4, 8, ...; a pointer for every row would not fit the registers
#pragma GCC unroll 32
    for (int i = 0; i < R; i += 4) a[i / 4] = left + part * from.part + i * from.row;
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
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 32
    for (int n = 0; n < N; ++n) {
      const __m512 first = _mm512_loadu_ps(start.data + n * bf16_lanes);
      __m512& s = sum[i * N + n];
      s = std::is_same_v<T, bf16> ? _mm512_add_ps(first, s) : _mm512_fmadd_ps(factor, s, first);
    }
    put<N>(c.data, sum + i * N);
    advance(start.data, start.row);
    advance(c.data, c.row);
  }
}

template <class T>
using Block = void (*)(int64_t, const bf16*, const LeftPairs&, RightPairs, float, FloatRows, TargetRows<T>);

constexpr int64_t most_vectors = 5;
constexpr int most_rows(int vectors) { return vectors == 1 ? 24 : vectors == 2 ? 12 : 31 / vectors - 1; }
constexpr int64_t pieces(int64_t n, int64_t most) { return (n + most - 1) / most; }

template <int N, class T, int... r>
constexpr std::array<Block<T>, sizeof...(r)> blocks(std::integer_sequence<int, r...>) {
  return {multiply_block<r + 1, N, T>...};
}

// Prefetches the sums that a deep product is added to: a block is so many instructions that the processor
// does not reach their loads by itself before it ends.
template <int N> void prefetch_sums(int64_t rows, int64_t pairs, FloatRows start) {
  constexpr int64_t least_pairs = 48;
  if (pairs < least_pairs || start.row == 0) return;
  for (int64_t r = 0; r < rows; ++r)
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) _mm_prefetch(start.data + r * start.row + n * bf16_lanes, _MM_HINT_T0);
}

// The rows of C in blocks of nearly equal height.
template <int N, class T>
void multiply_columns(int64_t m, int64_t pairs, const LeftPairs& a, RightPairs b, float alpha,
                      FloatRows start, TargetRows<T> c) {
  static constexpr auto of_rows = blocks<N, T>(std::make_integer_sequence<int, most_rows(N)>());
  const int64_t count = pieces(m, most_rows(N));
  if (count == 0) return;
  const int64_t least = m / count, taller = m % count;
  const bf16* left = a.data;
  for (int64_t piece = 0; piece < count; ++piece) {
    const int64_t rows = least + (piece < taller ? 1 : 0);
    prefetch_sums<N>(rows, pairs, start);
    of_rows[static_cast<size_t>(rows - 1)](pairs, left, a, b, alpha, start, c);
    left += rows * a.row;
    start.data += rows * start.row;
    c.data += rows * c.row;
  }
}

alignas(64) constexpr std::array<float, most_vectors * bf16_lanes> zeros{};

void multiply(int64_t m, int64_t columns, int64_t pairs, const LeftPairs& a, RightPairs b, float alpha,
              FloatRows start, FloatTarget c) {
  static constexpr std::array of_vectors{multiply_columns<1, float>, multiply_columns<2, float>,
                                         multiply_columns<3, float>, multiply_columns<4, float>,
                                         multiply_columns<5, float>};
  int64_t vectors = columns / bf16_lanes, j = 0;
  for (int64_t left = pieces(vectors, most_vectors); left > 0; --left) {
    const int64_t width = pieces(vectors, left);
    const FloatRows before = start.data ? FloatRows{start.data + j, start.row} : FloatRows{zeros.data(), 0};
    of_vectors[static_cast<size_t>(width - 1)](m, pairs, a, {b.data + 2 * j, b.pair}, alpha, before,
                                               {c.data + j, c.row});
    j += width * bf16_lanes;
    vectors -= width;
  }
}

void multiply_rounded(int64_t m, int64_t columns, int64_t pairs, const LeftPairs& a, RightPairs b,
                      FloatRows start, bf16* c, int64_t stride) {
  const FloatRows before = start.data ? start : FloatRows{zeros.data(), 0};
  const auto product = columns == bf16_panel ? multiply_columns<2, bf16> : multiply_columns<1, bf16>;
  product(m, pairs, a, b, 1, before, {c, stride});
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

const Bf16Kernels* avx512_bf16_kernels() {
  static constexpr Bf16Kernels kernels{"AVX-512-BF16",
                                       1,
                                       multiply,
                                       multiply_rounded,
                                       interleave_pairs,
                                       interleave_transposed_pairs,
                                       left_pairs_of_transposed,
                                       store,
                                       activate512,
                                       norm512,
                                       layer_norm512,
                                       layer_norm_backward512,
                                       depthwise512,
                                       depthwise_gradient512,
                                       pixels_to_points512,
                                       outputs_of_points512,
                                       softmax512,
                                       softmax_backward512,
                                       std::numeric_limits<int64_t>::max(),
                                       probabilities512,
                                       score_gradients512,
                                       window_scores512,
                                       window_values512,
                                       window_gradients512};
  return &kernels;
}

}  // namespace tessera

#else

const tessera::Bf16Kernels* tessera::avx512_bf16_kernels() { return nullptr; }

#endif
