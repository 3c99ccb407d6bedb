// Compiled for AVX-512-BF16 whatever the rest is compiled for, as bf16_gemm_avx512_cpu.cpp: attention over
// 16 tokens, whose matrix of scores is 16 vectors. All that becomes of it happens in registers and the first
// cache; the functions for any size take 1.3 to 1.45 times as long, much of it between them.

#include "engine/cpu/bf16_gemm.h"

#ifdef __AVX512BF16__

#include <immintrin.h>

#include "engine/cpu/bf16_gemm_x86.h"

namespace tessera {

namespace {

constexpr int64_t n = window_tokens;
static_assert(n == bf16_lanes, "a row of scores is a vector");
constexpr int64_t most_numbers = 64;  // of a token

// A right factor of the products: 8 pairs of tokens for each number, or pairs of numbers for each token.
struct alignas(64) RightFactor {
  bf16 of[n * most_numbers];
};
// 16 x 16 numbers: rows, or pairs of rows side by side.
struct alignas(64) Square {
  bf16 of[n * n];
};

// The right factor of a product whose depth are the tokens. [8 pairs, d]
void interleave(int64_t d, const WindowRows& x, RightFactor& to) {
  for (int64_t i = 0; i < n; i += 2)
    for (int64_t j = 0; j < d; j += bf16_panel)
      interleave_panel(x.data + i * x.stride + j, x.data + (i + 1) * x.stride + j, to.of + i * d + 2 * j);
}

// Calls row(i, low, high) with rows of A B, 32 columns at a time, A a square, B [16 tokens, 32] in pairs.
template <class Row>
inline __attribute__((always_inline)) void for_rows(const LeftPairs& a, const bf16* right, int64_t right_pair,
                                                    Row row) {
  constexpr int half = n / 2;
  for (int64_t first = 0; first < n; first += half) {
    __m512 sum[2 * half];
    product<half, 2>(n / 2, {a.data + first * a.row, a.row, a.pair}, right, right_pair, sum);
#pragma GCC unroll 8
    for (int64_t i = 0; i < half; ++i) row(first + i, sum[2 * i], sum[2 * i + 1]);
  }
}

// Two rows of 16, rounded, one after the other.
__m512i two_rows(__m512 first, __m512 second) { return (__m512i)_mm512_cvtne2ps_pbh(second, first); }

// 32 numbers of a row of the target: factor times the sums, with what is there where it adds.
void store(const WindowTarget& to, int64_t row, int64_t column, __m512 factor, __m512 low, __m512 high) {
  bf16* at = to.data + row * to.stride + column;
  low *= factor;
  high *= factor;
  if (to.add) {
    const __m512i before = _mm512_loadu_si512(at);
    low += widened(_mm512_castsi512_si256(before));
    high += widened(_mm512_extracti64x4_epi64(before, 1));
  }
  _mm512_storeu_si512(at, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

// P and the gradients of the scores, as rows and in pairs of rows.
struct ScoreSquares {
  Square p_pairs, ds, ds_pairs;

  // P = exp(s - lse) over its sum; ds = P (dP - rowsum(P dP)), as softmax_backward() of Bf16Kernels has them.
  ScoreSquares(const float* s, const float* dp, const float* lse, float* ds_sum) {
    for (int i = 0; i < n; i += rows_joined) {
      __m512 p[rows_joined], of_dp[rows_joined], shared[rows_joined];
#pragma GCC unroll 4
      for (int r = 0; r < rows_joined; ++r) {
        p[r] = exponential(_mm512_loadu_ps(s + (i + r) * n) - all(lse[i + r]));
        of_dp[r] = _mm512_loadu_ps(dp + (i + r) * n);
        shared[r] = p[r] * of_dp[r];
      }
      FourNumbers share, mean;
      const __m512 shares = all(1) / lanes_joined(p, BySum{});
      share.set(shares);
      mean.set(lanes_joined(shared, BySum{}) * shares);
#pragma GCC unroll 4
      for (int r = 0; r < rows_joined; ++r) {
        p[r] *= all(share.of[r]);
        of_dp[r] = p[r] * (of_dp[r] - all(mean.of[r]));
        float* const sum = ds_sum ? ds_sum + (i + r) * n : nullptr;
        if (sum) _mm512_storeu_ps(sum, _mm512_loadu_ps(sum) + of_dp[r]);
      }
#pragma GCC unroll 2
      for (int r = 0; r < rows_joined; r += 2) {
        const __m512i of_ds = two_rows(of_dp[r], of_dp[r + 1]);
        const int64_t at = (i + r) * n;
        _mm512_storeu_si512(p_pairs.of + at, paired(two_rows(p[r], p[r + 1])));
        _mm512_storeu_si512(ds.of + at, of_ds);
        _mm512_storeu_si512(ds_pairs.of + at, paired(of_ds));
      }
    }
  }
};

LeftPairs rows_of(const Square& square) { return {square.of, n, 2}; }
LeftPairs columns_of(const Square& pairs) { return {pairs.of, 2, 2 * n}; }

// to [16, d] = factor A x, A a square.
void write_tokens(int64_t d, const LeftPairs& a, const WindowRows& x, __m512 factor, const WindowTarget& to) {
  RightFactor right;
  interleave(d, x, right);
  for (int64_t j = 0; j < d; j += bf16_panel)
    for_rows(a, right.of + 2 * j, 2 * d,
             [&](int64_t i, __m512 low, __m512 high) { store(to, i, j, factor, low, high); });
}

// The sum over all numbers of (ds k) q.
float factor_gradient(int64_t d, const LeftPairs& ds, const WindowRows& k, const WindowRows& q) {
  RightFactor right;
  interleave(d, k, right);
  __m512 sum = _mm512_setzero_ps();
  for (int64_t j = 0; j < d; j += bf16_panel)
    for_rows(ds, right.of + 2 * j, 2 * d, [&](int64_t i, __m512 low, __m512 high) {
      const __m512i of_q = _mm512_loadu_si512(q.data + i * q.stride + j);
      sum = _mm512_fmadd_ps(low, widened(_mm512_castsi512_si256(of_q)), sum);
      sum = _mm512_fmadd_ps(high, widened(_mm512_extracti64x4_epi64(of_q, 1)), sum);
    });
  return _mm512_reduce_add_ps(sum);
}

}  // namespace

void window_scores512(int64_t d, const WindowRows& a, const WindowRows& b, float factor, float* s) {
  RightFactor right;
  interleave_transposed_pairs(d, n, b.data, b.stride, right.of, 2 * n);  // It prefetches the next window's.
  __m512 sum[n];
  product<n, 1>(d / 2, {a.data, a.stride, 2}, right.of, 2 * n, sum);
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) _mm512_storeu_ps(s + i * n, all(factor) * sum[i]);
}

void window_values512(int64_t d, const float* s, const WindowRows& v, float* maxima, float* sums,
                      const WindowTarget& y) {
  Square p;
  for (int i = 0; i < n; i += rows_joined) {
    __m512 row[rows_joined];
#pragma GCC unroll 4
    for (int r = 0; r < rows_joined; ++r) row[r] = _mm512_loadu_ps(s + (i + r) * n);
    FourNumbers most, sum;
    most.set(lanes_joined(row, ByMaximum{}));
#pragma GCC unroll 4
    for (int r = 0; r < rows_joined; ++r) row[r] = exponential(row[r] - all(most.of[r]));
    sum.set(lanes_joined(row, BySum{}));
    _mm512_storeu_si512(p.of + i * n, two_rows(row[0], row[1]));
    _mm512_storeu_si512(p.of + (i + 2) * n, two_rows(row[2], row[3]));
    for (int r = 0; r < rows_joined; ++r) {
      maxima[i + r] = most.of[r];
      sums[i + r] = sum.of[r];
    }
  }
  alignas(64) float shares[n];
  _mm512_storeu_ps(shares, all(1) / _mm512_loadu_ps(sums));
  RightFactor right;
  interleave(d, v, right);
  for (int64_t j = 0; j < d; j += bf16_panel)
    for_rows(rows_of(p), right.of + 2 * j, 2 * d,
             [&](int64_t i, __m512 low, __m512 high) { store(y, i, j, all(shares[i]), low, high); });
}

float window_gradients512(const WindowPass& of) {
  const ScoreSquares squares(of.s, of.dp, of.lse, of.ds_sum);
  const __m512 factor = all(of.factor);
  if (of.dq.data) write_tokens(of.d, rows_of(squares.ds), of.k, factor, of.dq);
  if (of.dk.data) write_tokens(of.d, columns_of(squares.ds_pairs), of.q, factor, of.dk);
  if (of.dv.data) write_tokens(of.d, columns_of(squares.p_pairs), of.dy, all(1), of.dv);
  return of.learns_factor ? factor_gradient(of.d, rows_of(squares.ds), of.k, of.q) : 0;
}

}  // namespace tessera

#endif
