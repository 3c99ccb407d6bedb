#pragma once

// Turns the products q . k that a warp holds into scores and their softmax.

#include <limits>

#include "engine/cpu/fast_math.h"
#include "engine/cuda/special.h"
#include "engine/ops/attention/fragments_cuda.h"

namespace tessera {

// exp_less() is exp(c x - y), with c and y prepared by exp_ready(). For bf16 it takes one multiplication and
// the special function unit, which is more exact than the rounding of the result.
template <class T> __device__ inline Wide<T> exp_ready(Wide<T> y) {
  constexpr float log2_e = 1.44269504f;
  return std::is_same_v<T, bf16> ? y * log2_e : y;
}
template <class T> __device__ inline Wide<T> exp_less(Wide<T> c, Wide<T> x, Wide<T> y) {
  if constexpr (std::is_same_v<T, bf16>)
    return fast_exp2(c * x - y);
  else
    return fast_exp(c * x - y);
}

// The larger of two numbers, ignoring a NaN: the NaN reappears as its own exponential.
struct Most {
  template <class W> __device__ static W of(W a, W b) { return std::fmax(a, b); }
};

// What is subtracted from the scores of a row: the largest, or 0 while all are masked, to avoid -inf - -inf.
template <class W> __device__ inline W finite_base(W most) {
  return most == -std::numeric_limits<W>::infinity() ? W(0) : most;
}

// Whether the block of eight keys from `left` on and the warp's rows from `first_query` on needs no masking:
// all keys exist, and the masked diagonal does not cross it. All lanes agree.
template <class T>
__device__ inline bool is_inner(const AttentionOperands<T>& in, const ScoreChain<T, ChainTerms::plain>& chain,
                                int first_query, int left) {
  const bool meets = left < first_query + warp_rows && first_query < left + 8;
  return left + 8 <= in.keys && !(chain.mask_diagonal && meets);
}

// The positions of a lane's scores in the block of eight keys from `left` on and the warp's rows.
template <class T> struct BlockPlaces {
  At at[4];
  bool is_key[4], inside[4];

  __device__ BlockPlaces(const AttentionOperands<T>& in, int first_query, int left) {
    const int lane = own_lane();
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int i = first_query + fragment_row(lane, e), j = left + fragment_column(lane, e);
      at[e] = place_of(in, i, j);
      is_key[e] = j < in.keys;
      inside[e] = i < in.queries && j < in.keys;
    }
  }
};

// Calls f(whether the score exists, half, s) for every score of the first `used` blocks; half as in
// each_score().
template <int blocks, class T, class F>
__device__ inline void each_plain_score(const AttentionOperands<T>& in,
                                        const ScoreChain<T, ChainTerms::plain>& chain, int first_query,
                                        int first_key, int used, Fragments<Wide<T>, blocks>& s, const F& f) {
  const int lane = own_lane();
#pragma unroll
  for (int n = 0; n < blocks; ++n) {
    if (n >= used) break;
    if (is_inner(in, chain, first_query, first_key + 8 * n)) {
#pragma unroll
      for (int e = 0; e < 4; ++e) f(true, e / 2, s[n][e]);
      continue;
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int i = first_query + fragment_row(lane, e), j = first_key + 8 * n + fragment_column(lane, e);
      f(j < in.keys && !(chain.mask_diagonal && i == j), e / 2, s[n][e]);
    }
  }
}

// s = the scores of the keys from `first_key` on; -inf beyond the last key.
template <int blocks, class T, ChainTerms terms>
__device__ inline void make_scores(const AttentionOperands<T>& in, const ScoreChain<T, terms>& chain,
                                   int first_query, int first_key, int used, Fragments<Wide<T>, blocks>& s) {
  using W = Wide<T>;
  if constexpr (terms != ChainTerms::plain) {
    each_block<W, blocks>(used, s, [&](int column, W(&value)[4]) {
      const BlockPlaces<T> places(in, first_query, first_key + column);
      chain.forward(value, places.at);
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (!places.is_key[e]) value[e] = -std::numeric_limits<W>::infinity();
    });
  } else {
    each_plain_score<blocks>(in, chain, first_query, first_key, used, s, [&](bool there, int, W& value) {
      value = there ? chain.scale.factor * value : -std::numeric_limits<W>::infinity();
    });
  }
}

// s = exp(score - lse) of plain scores, 0 beyond the matrix; `shift` is exp_ready(lse) of the lane's rows.
template <int blocks, class T>
__device__ inline void make_probabilities(const AttentionOperands<T>& in,
                                          const ScoreChain<T, ChainTerms::plain>& chain, int first_query,
                                          int first_key, int used, const Wide<T> (&shift)[2],
                                          Fragments<Wide<T>, blocks>& s) {
  using W = Wide<T>;
  const W factor = exp_ready<T>(chain.scale.factor);
  each_plain_score<blocks>(in, chain, first_query, first_key, used, s, [&](bool there, int half, W& value) {
    value = there ? exp_less<T>(factor, value, shift[half]) : W(0);
  });
}

}  // namespace tessera
