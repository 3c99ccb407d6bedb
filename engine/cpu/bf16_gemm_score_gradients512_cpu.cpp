// This file is compiled for AVX-512-BF16 whatever the rest is compiled for, as bf16_gemm_avx512_cpu.cpp: the
// gradients of attention's scores where a row has few keys, as factors of the products that follow.

#include "engine/cpu/bf16_gemm.h"

#ifdef __AVX512BF16__

#include "engine/cpu/bf16_gemm_rows512.h"

namespace tessera {

namespace {

// The backward pass of four rows, or fewer at the end: what begin() leaves for end(). With one_more, a key
// follows N whole vectors of keys.
template <int N, bool one_more> struct Gradients {
  FourRows<N> p, dp;
  FourNumbers share, mean;

  template <int R>
  void begin(const ScoreRows& of, int64_t i, const GradientRows& from, const ScoreFactors& to) {
    __m512 x[R * N], mass[R], sum[R];
    scores_of<R, N>(of, i, x);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const __m512 shift = all(from.lse[i + r] * log2_e);
#pragma GCC unroll 5
      for (int n = 0; n < N; ++n) x[r * N + n] -= shift;
      powers_of_two<N>(x + r * N);
      mass[r] = _mm512_setzero_ps();
#pragma GCC unroll 5
      for (int n = 0; n < N; ++n) {
        p.set(r, n, x[r * N + n]);
        mass[r] += x[r * N + n];
      }
    }
    product<R, N>(pairs_of(of.d), from_row(from.dy, i), from.v.data, from.v.pair, x);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      sum[r] = _mm512_setzero_ps();
#pragma GCC unroll 5
      for (int n = 0; n < N; ++n) {
        dp.set(r, n, x[r * N + n]);
        sum[r] = _mm512_fmadd_ps(p.get(r, n), x[r * N + n], sum[r]);
      }
    }
    finish_sums<R>(of, i, from, to, joined<R>(mass, BySum{}), joined<R>(sum, BySum{}));
  }

  // The shares and means of the rows, of whose exponentials and products with dP the sums are known but for
  // the last key.
  template <int R>
  inline __attribute__((always_inline)) void finish_sums(const ScoreRows& of, int64_t i,
                                                         const GradientRows& from, const ScoreFactors& to,
                                                         __m512 mass, __m512 sum) {
    if constexpr (!one_more) {
      const __m512 shares = all(1) / mass;
      share.set(shares);
      mean.set(sum * shares);
      return;
    }
    const __m512 lse = _mm512_maskz_loadu_ps(first_lanes(R), from.lse + i);
    const __m512 power = power_of_two(last_scores<R>(of, i) - lse * all(log2_e));
    const __m512 of_dp = last_products<R>(of.d, from_row(from.dy, i), from.last_value);
    const __m512 shares = all(1) / (mass + power), means = _mm512_fmadd_ps(power, of_dp, sum) * shares;
    const __m512 of_p = power * shares;
    const LastColumn<R> p_column(of_p), ds_column(of_p * (of_dp - means));
    const int64_t column = of.keys - 1, pairs = i / 2 * to.pair + 2 * column;
    p_column.write_pairs(to.p_pairs + pairs, to.pair);
    ds_column.write_pairs(to.ds_pairs + pairs, to.pair);
    ds_column.write_rows(to.ds + i * to.row + column, to.row);
    share.set(shares);
    mean.set(means);
  }

  template <int R> void end(int64_t i, const ScoreFactors& to) {
#pragma GCC unroll 2
    for (int r = 0; r < R; r += 2) {
      constexpr int pair = 2;
      __m512 ds[pair * N];
      const int64_t pairs = (i + r) / 2 * to.pair;
#pragma GCC unroll 5
      for (int n = 0; n < N; ++n) {
        __m512 of_p[pair];
#pragma GCC unroll 2
        for (int k = 0; k < pair; ++k) {
          const bool there = r + k < R;
          of_p[k] = there ? p.get(r + k, n) * all(share.of[r + k]) : _mm512_setzero_ps();
          ds[k * N + n] = there ? of_p[k] * (dp.get(r + k, n) - all(mean.of[r + k])) : _mm512_setzero_ps();
        }
        write_pairs(of_p[0], of_p[1], to.p_pairs + pairs + 2 * bf16_lanes * n);
        write_pairs(ds[n], ds[N + n], to.ds_pairs + pairs + 2 * bf16_lanes * n);
      }
#pragma GCC unroll 2
      for (int k = 0; k < pair; ++k)
        if (r + k < R) write_row<N>(ds + k * N, to.ds + (i + r + k) * to.row);
    }
  }
};

template <int N, bool one_more>
void gradients(const ScoreRows& of, const GradientRows& from, const ScoreFactors& to) {
  in_turns<Gradients<N, one_more>>(
      of.rows,
      [&](auto rows, int64_t i, auto& pass) { pass.template begin<decltype(rows)::value>(of, i, from, to); },
      [&](auto rows, int64_t i, auto& pass) { pass.template end<decltype(rows)::value>(i, to); });
}

}  // namespace

void score_gradients512(const ScoreRows& of, const GradientRows& from, const ScoreFactors& to) {
  static constexpr std::array of_vectors{gradients<1, false>, gradients<2, false>, gradients<3, false>,
                                         gradients<4, false>, gradients<5, false>};
  static constexpr std::array one_more{gradients<1, true>, gradients<2, true>, gradients<3, true>,
                                       gradients<4, true>};
  const size_t which = whole_vectors_of(of) - 1;
  (of.last_key ? one_more[which] : of_vectors[which])(of, from, to);
}

}  // namespace tessera

#endif
