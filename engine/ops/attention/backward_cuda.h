#pragma once

// What the kernels of attention's backward pass share: those by rows of queries (backward_queries_cuda.cu),
// by rows of keys (backward_keys_cuda.cu) and for whole heads (whole_backward_cuda.cu).

#include "engine/cuda/late_sums.h"
#include "engine/ops/attention/scores_cuda.h"

namespace tessera {

// What the kernel by rows of queries leaves for the kernel by rows of keys, [B, H, Nq]: P = share exp(s -
// lse), and the mean of dP under P. P is divided by its sum, which the rounding of s and lse leaves slightly
// off 1: otherwise ds would not sum to 0 over a row.
template <class W> struct RowSums {
  W *share, *mean;
  W* gate;  // [B, H, N]: the part of the gates' gradients from their rows; null where not wanted
};

// What the kernel by rows of keys writes.
template <class T> struct KeyTargets {
  TokenHeads<T> dk, dv;
  Target<T> dgates;
};

// Computes dq, the gradients that images share, and `sums`. Returns true if each block held all keys and so
// wrote their gradients too.
template <class T>
bool backward_by_queries(const AttentionSizes& sizes, const AttentionOperands<T>& operands,
                         const Wide<T>* lse, const RowSums<Wide<T>>& sums, const AttentionGradients<T>& to);

// Computes dk, dv and the gates' gradients from `sums`.
template <class T>
void backward_by_keys(const AttentionSizes& sizes, const AttentionOperands<T>& operands, const Wide<T>* lse,
                      const RowSums<Wide<T>>& sums, const KeyTargets<T>& to);

// Turns the sums over all keys of a lane's two rows, from `first_query` on, into the share and mean of
// RowSums. Rows beyond the matrix get 0: they read the last query's terms, by which their sum may be 0.
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

// target [n] = the sum of `count` parts in their order.
template <class T> void total(int64_t n, int64_t count, const Wide<T>* parts, const Target<T>& target) {
  if (n > 0) sum_parts(n, count, parts, Wide<T>(1), target.data, target.add);
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
