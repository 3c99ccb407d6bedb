#pragma once

// What the kernels of attention's backward share: those by rows of queries
// (attention_backward_queries_cuda.cu) and by rows of keys (attention_backward_keys_cuda.cu), and that of
// whole heads (attention_whole_backward_cuda.cu).

#include "engine/ops/attention/scores_cuda.h"

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

// A lane's two rows, from `first_query` on, once all keys have been seen: share and mean of P, which came as
// sums, become what RowSums says. A row beyond the matrix takes no part: by the last query's terms, which it
// has, its sum may be 0.
template <class W>
__device__ inline void close_row_sums(int first_query, int queries, W (&share)[2], W (&mean)[2]) {
  const int lane = own_lane();
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const W sum = row_all<Plus>(share[half]), weighed = row_all<Plus>(mean[half]);
    const bool is_query = first_query + lane / 4 + 8 * half < queries;
    share[half] = is_query ? 1 / sum : W(0);
    mean[half] = is_query ? weighed * share[half] : W(0);
  }
}

// target [n] = the sum of `count` parts in their order; written or added to.
template <class T> void total(int64_t n, int64_t count, const Wide<T>* parts, const Target<T>& target) {
  if (n > 0) sum_parts(n, count, parts, Wide<T>(1), target.data, target.add);
}

// The scale's gradient from parts [parts, heads].
template <class T>
void total_scale(int64_t parts, int64_t heads, const Wide<T>* scale, const Target<T>& target) {
  constexpr int64_t few = 256;  // that one launch adds up as fast as two
  if (parts <= few) return total(heads, parts, scale, target);
  column_sums(
      parts, heads, [=] __device__(int64_t i, int64_t j) { return scale[i * heads + j]; }, Wide<T>(1),
      target.data, target.add);
}

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
