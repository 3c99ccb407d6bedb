#pragma once

// This header holds the parts that bf16_gemm_scores512_cpu.cpp and bf16_gemm_score_gradients512_cpu.cpp
// share. Both keep four rows of attention's scores in registers and the first cache from the product to the
// factors that are made of them.

#include <immintrin.h>

#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

#include "engine/cpu/bf16_gemm_x86.h"

namespace tessera {

namespace {  // A test program also holds these functions with their instructions emulated.

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float ln_2 = 0.693147181f;

// The numbers that are added to a row of scores begin at 0, where they are zeros, or at most_row_keys - i,
// where that of key i is -inf.
alignas(64) inline constexpr std::array<float, 2 * most_row_keys + 1> starts = [] {
  std::array<float, 2 * most_row_keys + 1> row{};
  row[most_row_keys] = -infinity;
  return row;
}();

// The vectors of keys without one that follows them.
inline size_t whole_vectors_of(const ScoreRows& of) {
  return static_cast<size_t>(whole_bf16_vectors(of.last_key ? of.keys - 1 : of.keys) / bf16_lanes);
}

// The scores of R queries, i and those after it, in units of ln 2, so that 2^s is their exponential.
template <int R, int N>
inline __attribute__((always_inline)) void scores_of(const ScoreRows& of, int64_t i, __m512* s) {
  product<R, N>(pairs_of(of.d), from_row(of.q, i), of.k.data, of.k.pair, s);
  const __m512 factor = all(of.factor * log2_e);
  const __mmask16 wanted = first_lanes(of.keys - (N - 1) * bf16_lanes);
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    const float* const start = starts.data() + (of.mask_diagonal ? most_row_keys - (of.first + i + r) : 0);
#pragma GCC unroll 5
    for (int n = 0; n < N; ++n)
      s[r * N + n] = _mm512_fmadd_ps(factor, s[r * N + n], _mm512_loadu_ps(start + n * bf16_lanes));
    s[r * N + N - 1] = _mm512_mask_mov_ps(all(-infinity), wanted, s[r * N + N - 1]);
  }
}

// x = 2^x of N vectors as power_of_two(), each step of all before the next: few vectors wait for their own.
template <int N> inline __attribute__((always_inline)) void powers_of_two(__m512* x) {
  __m512 r[N], y[N];
#pragma GCC unroll 5
  for (int n = 0; n < N; ++n) r[n] = fraction(x[n]);
#pragma GCC unroll 5
  for (int n = 0; n < N; ++n) y[n] = all(power_coefficients[0]);
#pragma GCC unroll 5
  for (int k = 1; k < 6; ++k)
#pragma GCC unroll 5
    for (int n = 0; n < N; ++n) y[n] = _mm512_fmadd_ps(y[n], r[n], all(power_coefficients[k]));
#pragma GCC unroll 5
  for (int n = 0; n < N; ++n) x[n] = _mm512_scalef_ps(y[n], x[n]);
}

// Joins the lanes of R vectors, at most four.
template <int R, class Join> inline __attribute__((always_inline)) __m512 joined(const __m512* x, Join join) {
  const __m512 four[rows_joined] = {x[0], x[R > 1 ? 1 : 0], x[R > 2 ? 2 : 0], x[R > 3 ? 3 : 0]};
  return lanes_joined(four, join);
}

// Writes N vectors of a row, rounded.
template <int N> inline __attribute__((always_inline)) void write_row(const __m512* row, bf16* to) {
#pragma GCC unroll 2
  for (int n = 0; n + 1 < N; n += 2)
    _mm512_storeu_si512(to + n * bf16_lanes, (__m512i)_mm512_cvtne2ps_pbh(row[n + 1], row[n]));
  if constexpr (N % 2 == 1)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + (N - 1) * bf16_lanes),
                        (__m256i)_mm512_cvtneps_pbh(row[N - 1]));
}

// Writes 16 columns of two rows, rounded, in pairs.
inline void write_pairs(__m512 first, __m512 second, bf16* to) {
  _mm512_storeu_si512(to, paired((__m512i)_mm512_cvtne2ps_pbh(second, first)));
}

// The numbers that R queries have for one key, rounded: the first lanes of a vector, then zeros. One key
// follows whole vectors of them where 64 patches have a class token; a vector for each query would hold it
// and 15 zeros.
template <int R> struct LastColumn {
  alignas(32) bf16 of[bf16_lanes];

  explicit LastColumn(__m512 x) {
    const auto rounded = (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_mov_ps(first_lanes(R), x));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(of), rounded);
  }

  // Writes them to the queries' rows, each before a zero.
  void write_rows(bf16* to, int64_t row) const {
    for (int r = 0; r < R; ++r) {
      const bf16 pair[2] = {of[r], bf16{}};
      std::memcpy(to + r * row, pair, sizeof pair);
    }
  }

  // Writes them to the pairs of rows.
  void write_pairs(bf16* to, int64_t pair) const {
    for (int r = 0; r < R; r += 2) std::memcpy(to + r / 2 * pair, of + r, 2 * sizeof *of);
  }
};

// The products of R rows of d numbers, in pairs, with one row of as many.
template <int R>
inline __attribute__((always_inline)) __m512 last_products(int64_t d, const LeftPairs& a, const bf16* b) {
  __m512 sum[R];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) sum[r] = _mm512_setzero_ps();
  for_parts(d, [&](const auto& part, int64_t j) {
    const auto right = (__m512bh)part.load(b + j);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
      sum[r] = _mm512_dpbf16_ps(sum[r], (__m512bh)part.load(a.data + r * a.row + j), right);
  });
  return joined<R>(sum, BySum{});
}

// The last key's scores in units of ln 2.
template <int R> inline __attribute__((always_inline)) __m512 last_scores(const ScoreRows& of, int64_t i) {
  const __m512 s = last_products<R>(of.d, from_row(of.q, i), of.last_key) * all(of.factor * log2_e);
  const int64_t own = of.keys - 1 - (of.first + i);  // the query that is this key
  if (!of.mask_diagonal || own < 0 || own >= rows_joined) return s;
  return _mm512_mask_mov_ps(s, static_cast<__mmask16>(1 << own), all(-infinity));
}

// N vectors each of four rows.
template <int N> struct alignas(64) FourRows {
  float of[bf16_lanes * rows_joined * N];

  __m512 get(int64_t r, int64_t n) const { return _mm512_loadu_ps(of + (r * N + n) * bf16_lanes); }
  void set(int64_t r, int64_t n, __m512 x) { _mm512_storeu_ps(of + (r * N + n) * bf16_lanes, x); }
};

// Calls act(rows) for fewer rows than four, their number known when compiled.
template <class Act> inline __attribute__((always_inline)) void for_rest(int64_t rows, Act act) {
  if (rows == 3) act(std::integral_constant<int, 3>{});
  if (rows == 2) act(std::integral_constant<int, 2>{});
  if (rows == 1) act(std::integral_constant<int, 1>{});
}

// Calls begin(rows, i, pass) and end(rows, i, pass) for every four rows and for what is left. The next rows
// begin before a pass ends, which would wait for its maxima or sums.
template <class Pass, class Begin, class End>
inline __attribute__((always_inline)) void in_turns(int64_t count, Begin begin, End end) {
  constexpr std::integral_constant<int, rows_joined> four{};
  Pass passes[2];
  const auto pass_of = [&](int64_t i) -> Pass& { return passes[i / rows_joined % 2]; };
  const int64_t whole = count / rows_joined * rows_joined, before = whole - rows_joined;
  for (int64_t i = 0; i < whole; i += rows_joined) {
    begin(four, i, pass_of(i));
    if (i > 0) end(four, i - rows_joined, pass_of(i - rows_joined));
  }
  for_rest(count - whole, [&](auto rest) { begin(rest, whole, pass_of(whole)); });
  if (whole > 0) end(four, before, pass_of(before));
  for_rest(count - whole, [&](auto rest) { end(rest, whole, pass_of(whole)); });
}

}  // namespace

}  // namespace tessera
