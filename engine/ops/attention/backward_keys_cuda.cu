// Attention's backward pass by rows of keys: computes the transposed scores again and, with the sums of their
// rows, dk, dv and the gates' gradients.

#include "engine/core/dispatch.h"
#include "engine/ops/attention/backward_cuda.h"

namespace tessera {

namespace {

// Block (image, head, block of keys). Rows are keys here, and the columns of a tile are queries.
template <class T, int depth, ChainTerms terms>
__global__ void __launch_bounds__(Cut<T, depth>::warps* warp, (Cut<T, depth>::residents(terms)))
    backward_keys(AttentionOperands<T> in, int row_blocks, const Wide<T>* lse, RowSums<Wide<T>> sums,
                  KeyTargets<T> to) {
  wait_for_previous_kernel();
  using W = Wide<T>;
  using Tiles = Cut<T, depth>;
  const BlockRows block(row_blocks, in.heads);
  const int64_t image = block.image;
  const int lane = own_lane();
  const int head = block.head, own = block.own, first_key = block.first + own;
  T* const k_rows = shared_memory<T>();
  T* const v_rows = k_rows + block.rows * Tiles::stride;
  T* const q_tile = v_rows + block.rows * Tiles::stride;
  T* const dy_tile = q_tile + Tiles::columns * Tiles::stride;
  W* const tile_lse = reinterpret_cast<W*>(dy_tile + Tiles::columns * Tiles::stride);
  W *const tile_share = tile_lse + Tiles::columns, *const tile_mean = tile_share + Tiles::columns;
  W* const gate = tile_mean + Tiles::columns;
  const auto q = rows_of(in.q, in.queries, image, head, in.d),
             dy = rows_of(in.dy, in.queries, image, head, in.d);
  const int64_t first_of_head = (image * in.heads + head) * in.queries;

  load_tile<depth>(rows_of(in.k, in.keys, image, head, in.d), block.first, in.keys - block.first, in.d,
                   in.packed, block.rows, k_rows);
  load_tile<depth>(rows_of(in.v, in.keys, image, head, in.d), block.first, in.keys - block.first, in.d,
                   in.packed, block.rows, v_rows);
  if constexpr (may_have(terms, ChainTerms::content_decay))
    load_gates(in.terms, image, head, in.heads, in.keys, gate);
  const ScoreChain<T, terms> chain(in.terms, image, head, in.keys, gate);
  Fragments<W, depth / 8> dk_sum, dv_sum;
  clear<W, depth / 8>(dk_sum);
  clear<W, depth / 8>(dv_sum);
  W dgate[2] = {0, 0};
  for (int first = 0; first < in.queries; first += Tiles::columns) {
    const int count = min(Tiles::columns, in.queries - first), used = (count + 7) / 8;
    __syncthreads();
    load_tile<depth>(q, first, count, in.d, in.packed, (count + 15) / 16 * 16, q_tile);
    load_tile<depth>(dy, first, count, in.d, in.packed, (count + 15) / 16 * 16, dy_tile);
    for (int c = static_cast<int>(threadIdx.x); c < count; c += static_cast<int>(blockDim.x)) {
      tile_lse[c] = exp_ready<T>(lse[first_of_head + first + c]);
      tile_share[c] = sums.share[first_of_head + first + c];
      tile_mean[c] = sums.mean[first_of_head + first + c];
    }
    __syncthreads();
    if (first_key >= in.keys) continue;
    ScorePair<W, Tiles::blocks> pair;
    multiply_pair<depth, T, Tiles::blocks>(k_rows + own * Tiles::stride, q_tile, v_rows + own * Tiles::stride,
                                           dy_tile, used, pair);
    each_block_pair<W, Tiles::blocks>(used, pair.raw, pair.dp, [&](int left, W(&raw)[4], W(&dp)[4]) {
      At at[4];
      W p[4];
      ChainShares<W> back[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        at[e] = place_of(in, first + left + fragment_column(lane, e), first_key + fragment_row(lane, e));
        p[e] = raw[e];
      }
      chain.forward(p, at);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int column = left + fragment_column(lane, e);
        const bool inside = column < count && first_key + fragment_row(lane, e) < in.keys;
        p[e] = exp_less<T>(exp_ready<T>(1), p[e], tile_lse[column]) * tile_share[column];
        back[e] = {inside ? p[e] * (dp[e] - tile_mean[column]) : W(0), 0, 0, 0, 0};
        p[e] = inside ? p[e] : W(0);
      }
      chain.backward(raw, at, back);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        dgate[e / 2] += back[e].gate;
        raw[e] = p[e];
        dp[e] = back[e].ds;
      }
    });
    multiply_fragments<depth, T, Tiles::blocks>(pair.raw, dy_tile, used, dv_sum);
    multiply_fragments<depth, T, Tiles::blocks>(pair.dp, q_tile, used, dk_sum);
  }
  if (first_key >= in.keys) return;

  const auto to_k = rows_of(to.dk, in.keys, image, head, in.d),
             to_v = rows_of(to.dv, in.keys, image, head, in.d);
  if (to_k.data)
    store_fragments<depth>(
        dk_sum, [&](int) { return chain.scale.factor; }, to_k, to.dk.add, first_key, in.keys, in.d);
  if (to_v.data)
    store_fragments<depth>(
        dv_sum, [](int) { return W(1); }, to_v, to.dv.add, first_key, in.keys, in.d);
  if (!to.dgates.data) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const W as_key = row_all<Plus>(dgate[half]);
    const int j = first_key + lane / 4 + 8 * half;
    if (j < in.keys && lane % 4 == 0)
      store_gate(to.dgates, in, image, head, j, sums.gate[first_of_head + j] + as_key);
  }
}

}  // namespace

template <class T>
void backward_by_keys(const AttentionSizes& sizes, const AttentionOperands<T>& operands, const Wide<T>* lse,
                      const RowSums<Wide<T>>& sums, const KeyTargets<T>& to) {
  with_depth<T>(sizes.head_dim, [&](auto depth) {
    using Tiles = Cut<T, depth>;
    const RowBlocks rows(sizes.keys, Tiles::warps);
    const int64_t tiles = 2 * (rows.rows() + Tiles::columns) * Tiles::stride;
    const int64_t numbers = 3 * Tiles::columns + (operands.terms.gates ? sizes.keys : 0);
    with_terms<T>(operands.terms, [&](auto which) {
      launch(
          backward_keys<T, depth, which>,
          LaunchGrid{blocks_of(sizes.images * sizes.heads * rows.count), dim3(rows.warps * warp),
                     static_cast<size_t>(tiles) * sizeof(T) + static_cast<size_t>(numbers) * sizeof(Wide<T>)},
          operands, rows.count, lse, sums, to);
    });
  });
}

TESSERA_FOR_FLOATS(backward_by_keys)

}  // namespace tessera
