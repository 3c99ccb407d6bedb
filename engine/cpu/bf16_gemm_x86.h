#pragma once

// What the bf16 kernels of x86-64 processors share.

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

#include "engine/cpu/bf16_gemm.h"

namespace tessera {

// interleave(), interleave_transposed() and left_of_transposed() of Bf16Kernels by AVX-512.
void interleave_pairs(int64_t depth, int64_t columns, const bf16* from, int64_t stride, bf16* to,
                      int64_t pair);
void interleave_transposed_pairs(int64_t depth, int64_t columns, const bf16* from, int64_t stride, bf16* to,
                                 int64_t pair);
LeftPairs left_pairs_of_transposed(int64_t depth, int64_t m, const bf16* from, int64_t stride, bf16* to);

// left_of_transposed() of Bf16Kernels with the pairs of a row side by side, as AMX loads them; by
// AVX-512-BF16. The rows are whole vectors of pairs, with zeros beyond the depth.
LeftPairs left_rows_of_transposed(int64_t depth, int64_t m, const bf16* from, int64_t stride, bf16* to);

// softmax() and softmax_backward() of Bf16Kernels by AVX-512-BF16.
void softmax512(int64_t rows, int64_t columns, FloatRows s, bf16* p, int64_t stride, float* maxima,
                float* sums);
void softmax_backward512(int64_t rows, int64_t columns, FloatTarget s, FloatTarget dp, const float* lse,
                         bf16* p, bf16* ds, int64_t stride, float* shares, float* means);

// activate(), norm(), layer_norm() and layer_norm_backward() of Bf16Kernels by AVX-512-BF16.
void activate512(Bf16Function f, int64_t rows, int64_t columns, FloatRows z, bf16* y, bf16* slope,
                 int64_t stride);
void norm512(Bf16Function f, int64_t n, int64_t columns, const float* scale, const float* shift,
             const bf16* x, const bf16* residual, bf16* y);
void layer_norm512(int64_t rows, int64_t width, const bf16* x, const bf16* weight, const bf16* bias,
                   float eps, bf16* y, float* mean, float* rstd);
void layer_norm_backward512(int64_t rows, int64_t width, const LayerNormRows& of);

// depthwise(), depthwise_gradient(), pixels_to_points() and outputs_of_points() of Bf16Kernels by
// AVX-512-BF16.
DepthwiseFunction depthwise512(int64_t kernel, int64_t stride);
DepthwiseGradient depthwise_gradient512(int64_t kernel, int64_t stride);
void pixels_to_points512(const PixelSquares& squares);
void outputs_of_points512(const OutputSquares& squares);

// window_scores(), window_values() and window_gradients() of Bf16Kernels by AVX-512-BF16.
void window_scores512(int64_t d, const WindowRows& a, const WindowRows& b, float factor, float* s);
void window_values512(int64_t d, const float* s, const WindowRows& v, float* maxima, float* sums,
                      const WindowTarget& y);
float window_gradients512(const WindowPass& of);

// probabilities() and score_gradients() of Bf16Kernels by AVX-512-BF16.
void probabilities512(const ScoreRows& of, bf16* p, int64_t stride, float* maxima, float* sums);
void score_gradients512(const ScoreRows& of, const GradientRows& from, const ScoreFactors& to);

#ifdef __AVX512BF16__
// A mask of the first n of 16 lanes.
static inline __mmask16 first_lanes(int64_t n) {
  return static_cast<__mmask16>(n >= bf16_lanes ? 0xffff : n <= 0 ? 0 : (1 << n) - 1);
}

// 16 numbers as floats.
static inline __m512 widened(__m256i numbers) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(numbers), 16));
}

// 32 columns of two rows as pairs: to = first[0], second[0], first[1], ...
static inline void interleave_panel(const bf16* first, const bf16* second, bf16* to) {
  const __m512i in_order =  // word i of the result is first[i / 2] or, 32 words on, second[i / 2]
      _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5, 36,
                       4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i a = _mm512_loadu_si512(first), b = _mm512_loadu_si512(second);
  const __m512i later = _mm512_add_epi16(in_order, _mm512_set1_epi16(bf16_lanes));
  _mm512_storeu_si512(to, _mm512_permutex2var_epi16(a, in_order, b));
  _mm512_storeu_si512(to + bf16_panel, _mm512_permutex2var_epi16(a, later, b));
}

static inline __m512 all(float x) { return _mm512_set1_ps(x); }

// The two numbers at `from` as they lie.
static inline int32_t pair_at(const bf16* from) {
  int32_t pair;
  __builtin_memcpy(&pair, from, sizeof pair);
  return pair;
}

// sum [R, N vectors] = A B of so many pairs, B [pairs, N vectors] in pairs `right_pair` apart; the sums stay
// in registers.
template <int R, int N>
static inline __attribute__((always_inline)) void product(int64_t pairs, const LeftPairs& a,
                                                          const bf16* right, int64_t right_pair,
                                                          __m512* sum) {
  const bf16* row[(R + 3) / 4];  // rows 0, 4, 8, ...
#pragma GCC unroll 4
  for (int i = 0; i < (R + 3) / 4; ++i) row[i] = a.data + int64_t{4} * i * a.row;
  const int64_t of_four[4] = {0, a.row, 2 * a.row, 3 * a.row};
#pragma GCC unroll 32
  for (int i = 0; i < R * N; ++i) sum[i] = _mm512_setzero_ps();
  for (int64_t p = 0; p < pairs; ++p, right += right_pair) {
    __m512i b[N];
#pragma GCC unroll 5
    for (int j = 0; j < N; ++j) b[j] = _mm512_loadu_si512(right + 2 * bf16_lanes * j);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const __m512i left = _mm512_set1_epi32(pair_at(row[i / 4] + of_four[i % 4]));
#pragma GCC unroll 5
      for (int j = 0; j < N; ++j)
        sum[i * N + j] = _mm512_dpbf16_ps(sum[i * N + j], (__m512bh)left, (__m512bh)b[j]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < (R + 3) / 4; ++i) row[i] += a.pair;
  }
}

// The pairs that two rows of 16 numbers, one after the other, have in each column.
static inline __m512i paired(__m512i rows) {
  const __m512i in_pairs = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23,
                                            7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(in_pairs, rows);
}

// Whole reads and writes all 32 numbers, without masks, because masked stores are slow on some processors.
struct Whole {
  static __m512i load(const bf16* from) { return _mm512_loadu_si512(from); }
  static void store(bf16* to, __m512i numbers) { _mm512_storeu_si512(to, numbers); }
};

// First reads and writes the first n of 32 numbers.
struct First {
  int64_t n;

  __mmask32 wanted() const { return (1u << n) - 1; }
  __m512i load(const bf16* from) const { return _mm512_maskz_loadu_epi16(wanted(), from); }
  void store(bf16* to, __m512i numbers) const { _mm512_mask_storeu_epi16(to, wanted(), numbers); }
};

// Calls some(part, j) for the columns [0, n): 32 at a time, then for what is left.
template <class Some> static inline void for_parts(int64_t n, Some some) {
  int64_t j = 0;
  for (; j + bf16_panel <= n; j += bf16_panel) some(Whole{}, j);
  if (j < n) some(First{n - j}, j);
}

struct BySum {
  __m512 operator()(__m512 a, __m512 b) const { return a + b; }
};
struct ByMaximum {
  __m512 operator()(__m512 a, __m512 b) const { return _mm512_max_ps(a, b); }
};

static constexpr int rows_joined = 4;

// Joins the lanes of each of four vectors; each quarter of the result holds the four. That takes a third of
// the instructions that one vector after the other would.
template <class Join> static inline __m512 lanes_joined(const __m512* x, Join join) {
  const auto lanes = [=](__m512i a, __m512i b) { return (__m512i)join((__m512)a, (__m512)b); };
  const auto pair = [=](int i) {  // half the lanes of i and i + 1 with the other half
    const auto a = (__m512i)x[i], b = (__m512i)x[i + 1];
    return lanes(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  };
  const __m512i first = pair(0), second = pair(2),
                quarters = lanes(_mm512_unpacklo_epi64(first, second), _mm512_unpackhi_epi64(first, second)),
                halves = lanes(quarters, _mm512_shuffle_i32x4(quarters, quarters, 0x4e));
  return (__m512)lanes(halves, _mm512_shuffle_i32x4(halves, halves, 0xb1));
}

// A number for each of four rows, in memory that is as long as a vector of them.
struct alignas(64) FourNumbers {
  float of[bf16_lanes];

  void set(__m512 numbers) { _mm512_storeu_ps(of, numbers); }
  __m512 get() const { return _mm512_loadu_ps(of); }
};

// Calls four(row) for every four rows, whose numbers are row[0] to row[3]. The last one is named several
// times where there are fewer, so that a row's bits do not depend on those beside it.
template <class Four> static inline void for_four_rows(int64_t rows, Four four) {
  for (int64_t i = 0; i < rows; i += rows_joined) {
    int64_t row[rows_joined];
    for (int r = 0; r < rows_joined; ++r) row[r] = i + r < rows ? i + r : rows - 1;
    four(row);
  }
}

static inline bool named_before(const int64_t* row, int r) { return r > 0 && row[r] == row[r - 1]; }

static inline void write_rows(const int64_t* row, const FourNumbers& numbers, float* to) {
  for (int r = 0; r < rows_joined; ++r) to[row[r]] = numbers.of[r];
}

// The fraction of x, [0, 1).
static inline __m512 fraction(__m512 x) {
  return _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}

// 2^r for r in [0, 1): a polynomial, minimax on that range (Lawson's algorithm), the highest power first.
static constexpr float power_coefficients[] = {0.0018671302f, 0.00901703f, 0.055799913f,
                                               0.24016444f,   0.6931513f,  1.0f};

// 2^x, of any x. Relative error below 2e-7; 2^0 is 1, 2^-inf 0, and NaN stays NaN.
static inline __m512 power_of_two(__m512 x) {
  const __m512 r = fraction(x);
  __m512 y = _mm512_set1_ps(power_coefficients[0]);
#pragma GCC unroll 5
  for (int k = 1; k < 6; ++k) y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(power_coefficients[k]));
  return _mm512_scalef_ps(y, x);  // times 2 to the power of the rest
}

static constexpr float log2_e = 1.44269504f;
static inline __m512 exponential(__m512 x) { return power_of_two(x * all(log2_e)); }
#endif

}  // namespace tessera
