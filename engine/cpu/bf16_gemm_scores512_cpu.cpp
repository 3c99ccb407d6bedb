// This file is compiled for AVX-512-BF16 whatever the rest is compiled for, as bf16_gemm_avx512_cpu.cpp:
// attention's probabilities where a row of scores has few keys. The functions for any size store all scores
// and read them twice.

#include "engine/cpu/bf16_gemm.h"

#ifdef __AVX512BF16__

#include "engine/cpu/bf16_gemm_rows512.h"

namespace tessera {

namespace {

// The forward pass of four rows, or fewer at the end: what begin() leaves for end(). With one_more, a key
// follows N whole vectors of keys.
template <int N, bool one_more> struct Probabilities {
  FourRows<N> s;
  FourNumbers maximum, last;

  // Queries i to i + R.
  template <int R> void begin(const ScoreRows& of, int64_t i) {
    __m512 row[R * N], most[R];
    scores_of<R, N>(of, i, row);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      most[r] = row[r * N];
#pragma GCC unroll 5
      for (int n = 0; n < N; ++n) {
        s.set(r, n, row[r * N + n]);
        if (n > 0) most[r] = _mm512_max_ps(most[r], row[r * N + n]);
      }
    }
    __m512 of_rows = joined<R>(most, ByMaximum{});
    if constexpr (one_more) {
      const __m512 more = last_scores<R>(of, i);
      of_rows = _mm512_max_ps(of_rows, more);
      last.set(more);
    }
    maximum.set(of_rows);
  }

  template <int R>
  void end(const ScoreRows& of, int64_t i, bf16* p, int64_t stride, float* maxima, float* sums) {
    __m512 sum[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      __m512 row[N];
#pragma GCC unroll 5
      for (int n = 0; n < N; ++n) row[n] = s.get(r, n) - all(maximum.of[r]);
      powers_of_two<N>(row);
      sum[r] = row[0];
#pragma GCC unroll 5
      for (int n = 1; n < N; ++n) sum[r] += row[n];
      write_row<N>(row, p + (i + r) * stride);
    }
    FourNumbers total;
    total.set(joined<R>(sum, BySum{}));
    if constexpr (one_more) {
      const __m512 more = power_of_two(last.get() - maximum.get());
      total.set(total.get() + more);
      LastColumn<R>(more).write_rows(p + i * stride + of.keys - 1, stride);
    }
    for (int r = 0; r < R; ++r) {
      maxima[i + r] = maximum.of[r] * ln_2;
      sums[i + r] = total.of[r];
    }
  }
};

template <int N, bool one_more>
void probabilities(const ScoreRows& of, bf16* p, int64_t stride, float* maxima, float* sums) {
  in_turns<Probabilities<N, one_more>>(
      of.rows, [&](auto rows, int64_t i, auto& pass) { pass.template begin<decltype(rows)::value>(of, i); },
      [&](auto rows, int64_t i, auto& pass) {
        pass.template end<decltype(rows)::value>(of, i, p, stride, maxima, sums);
      });
}

}  // namespace

void probabilities512(const ScoreRows& of, bf16* p, int64_t stride, float* maxima, float* sums) {
  static constexpr std::array of_vectors{probabilities<1, false>, probabilities<2, false>,
                                         probabilities<3, false>, probabilities<4, false>,
                                         probabilities<5, false>};
  static constexpr std::array one_more{probabilities<1, true>, probabilities<2, true>, probabilities<3, true>,
                                       probabilities<4, true>};
  const size_t which = whole_vectors_of(of) - 1;
  (of.last_key ? one_more[which] : of_vectors[which])(of, p, stride, maxima, sums);
}

}  // namespace tessera

#endif
