#pragma once

// What the two sides of attention's backward share: that of the queries (attention_backward_queries_cuda.cu)
// and that of the keys (attention_backward_keys_cuda.cu).

#include "engine/ops/attention_scores_cuda.h"

namespace tessera {

// What the rows of queries leave for the rows of keys, [B, H, Nq]: P = share exp(s - lse), dP's mean under P.
// P is divided by its sum, which the rounding of s and lse leaves a little off 1: else ds would not sum to 0
// over a row.
template <class W> struct RowSums {
  W *share, *mean;
  W* gate;  // [B, H, N]: of the gates' gradients, the queries' part; null where not wanted
};

// What the rows of keys write.
template <class T> struct KeyTargets {
  TokenHeads<T> dk, dv;
  Target<T> dgates;
};

// dq, the gradients that images share, and what the rows of keys need. True where the queries had all keys at
// hand and wrote their gradients too.
template <class T>
bool backward_by_queries(const AttentionSizes& sizes, const AttentionOperands<T>& operands,
                         const Wide<T>* lse, const RowSums<Wide<T>>& sums, const AttentionGradients<T>& to);

// dk, dv and the gates' gradients, from `sums`.
template <class T>
void backward_by_keys(const AttentionSizes& sizes, const AttentionOperands<T>& operands, const Wide<T>* lse,
                      const RowSums<Wide<T>>& sums, const KeyTargets<T>& to);

// The fragments of a tile of scores: q . k, and dP = dy . v.
template <class W, int blocks> struct ScorePair { Fragments<W, blocks> raw, dp; };

// Both products of a warp's rows with the rows of a tile: raw = a b^T, dp = a2 b2^T.
template <int depth, class T, int blocks>
__device__ inline void multiply_pair(const T* a, const T* b, const T* a2, const T* b2, int used,
                                     ScorePair<Wide<T>, blocks>& pair) {
  clear<Wide<T>, blocks>(pair.raw);
  clear<Wide<T>, blocks>(pair.dp);
  multiply_rows<depth, T, blocks>(a, b, used, pair.raw);
  multiply_rows<depth, T, blocks>(a2, b2, used, pair.dp);
}

// dgates of token i.
template <class T>
__device__ inline void store_gate(const Target<T>& dgates, const AttentionOperands<T>& in, int64_t image,
                                  int head, int i, Wide<T> value) {
  T& place = dgates.data[(image * in.keys + i) * in.heads + head];
  place = T(dgates.add ? Wide<T>(place) + value : value);
}

}  // namespace tessera
