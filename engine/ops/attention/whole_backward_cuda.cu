// Attention's backward pass for heads that one block holds whole: the warps compute P and ds for their
// queries and pass them through shared memory to compute the keys' gradients.

#include "engine/ops/attention/backward_cuda.h"
#include "engine/ops/attention/whole_cuda.h"

namespace tessera {

namespace {

// The shared memory of a block.
template <class Head> struct WholeRoom {
  static constexpr int scores = Head::rows * Head::score_stride;
  static constexpr size_t bytes = (4 * Head::elements + 2 * scores) * sizeof(bf16);
  bf16 *q, *k, *v, *dy;  // [rows, depth]
  bf16 *p, *ds;          // [rows, rows]

  __device__ explicit WholeRoom(bf16* memory)
      : q(memory),
        k(q + Head::elements),
        v(k + Head::elements),
        dy(v + Head::elements),
        p(dy + Head::elements),
        ds(p + scores) {}
};

// The queries of a warp.
template <class Head> struct WholeQueries {
  const WholeRoom<Head>& room;
  int first;
  LeftRows<Head> dy;
  Fragments<float, 2> p[Head::tiles];         // exp(s - lse)
  float share[2] = {0, 0}, mean[2] = {0, 0};  // as RowSums has them
  Fragments<float, Head::depth / 8> dq;       // not yet scaled

  __device__ WholeQueries(const WholeRoom<Head>& its_room, int its_first)
      : room(its_room), first(its_first), dy(its_room.dy + its_first * Head::stride) {}

  // lse: of the lane's rows, ready.
  __device__ void make_probabilities(float factor, const float (&lse)[2], const WholeMask<Head>& mask,
                                     int queries) {
    const LeftRows<Head> q(room.q + first * Head::stride);
#pragma unroll
    for (int tile = 0; tile < Head::tiles; ++tile) {
      Fragments<float, 2> dp;
      q.multiply(room.k + tile * warp_rows * Head::stride, p[tile]);
      dy.multiply(room.v + tile * warp_rows * Head::stride, dp);
      each_number<Head>(
          tile, [&](int n, int e) { p[tile][n][e] = fast_exp2(factor * p[tile][n][e] - lse[e / 2]); });
      mask.apply(tile, p[tile], 0);
      each_number<Head>(tile, [&](int n, int e) {
        share[e / 2] += p[tile][n][e];
        mean[e / 2] += p[tile][n][e] * dp[n][e];
      });
    }
    close_row_sums(first, queries, share, mean);
  }

  // Stores P and ds for the keys, and sums dq. dP is computed again: holding it would leave registers for
  // fewer warps.
  __device__ void make_gradients() {
    clear<float, Head::depth / 8>(dq);
#pragma unroll
    for (int tile = 0; tile < Head::tiles; ++tile) {
      const int column = tile * warp_rows, at = first * Head::score_stride + column;
      Fragments<float, 2> ds;
      dy.multiply(room.v + column * Head::stride, ds);
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          p[tile][n][e] *= share[e / 2];
          ds[n][e] = p[tile][n][e] * (ds[n][e] - mean[e / 2]);
        }
      store_tile(p[tile], 2, room.p + at, Head::score_stride);
      store_tile(ds, 2, room.ds + at, Head::score_stride);
      multiply_fragments<Head::depth, bf16, 2>(ds, room.k + column * Head::stride, 2, dq);
    }
  }
};

// Block (image, head). dscale [B, H]: each head's share of the scale's gradient, or null.
template <class Head>
__global__ void __launch_bounds__(Head::threads, Head::backward_residents)
    backward_head(AttentionOperands<bf16> in, const float* lse, TokenHeads<bf16> dq, TokenHeads<bf16> dk,
                  TokenHeads<bf16> dv, float* dscale) {
  wait_for_previous_kernel();
  const WholePlace place(in.heads);
  const int first = own_warp() * warp_rows;
  const WholeRoom<Head> room(shared_memory<bf16>());
  load_heads<Head>(place, {in.q, in.k, in.v, in.dy}, in.keys, in.d, room.q);
  const auto lse_of = [&](int i) {
    return exp_ready<bf16>(i < in.keys ? lse[int64_t{blockIdx.x} * in.keys + i] : 0.0f);
  };
  const float shift[2] = {lse_of(first + own_lane() / 4), lse_of(first + own_lane() / 4 + 8)};
  const float factor = in.terms.scale_term(place.head).factor;
  __syncthreads();
  WholeQueries<Head> queries(room, first);
  queries.make_probabilities(exp_ready<bf16>(factor), shift, WholeMask<Head>(in), in.keys);
  queries.make_gradients();
  if (dscale) {  // ds_ij (q_i . k_j) over all keys is q_i . sum_j ds_ij k_j
    const float sum = block_sum(products<Head::depth>(queries.dq, room.q + first * Head::stride));
    if (threadIdx.x == 0) dscale[blockIdx.x] = sum;
  }
  __syncthreads();

  // From here on the memory of k and v buffers the rows that are written.
  const auto store = [&](const Fragments<float, Head::depth / 8>& y, float by, const TokenHeads<bf16>& to,
                         bf16* through) {
    store_rows<Head>(
        place, y, [=](int) { return by; }, to, first, in.keys, in.d, through + first * Head::stride);
  };
  if (dq.data) store(queries.dq, factor, dq, room.k);
  Fragments<float, Head::depth / 8> sum;
  if (dv.data) {
    clear<float, Head::depth / 8>(sum);
    multiply_turned<Head::depth>(room.p + first, Head::score_stride, room.dy, Head::rows, sum);
    store(sum, 1, dv, room.v);
  }
  if (dk.data) {
    clear<float, Head::depth / 8>(sum);
    multiply_turned<Head::depth>(room.ds + first, Head::score_stride, room.q, Head::rows, sum);
    store(sum, factor, dk, room.k);
  }
}

}  // namespace

bool backward_whole(const AttentionOperands<bf16>& operands, const float* lse,
                    const AttentionGradients<bf16>& to) {
  if (!in_packs(to.dq) || !in_packs(to.dk) || !in_packs(to.dv)) return false;
  return with_whole(operands, [&]<class Head>(Head) {
    const int64_t heads = operands.images * operands.heads;
    const LateParts<bf16> scale = late_parts<bf16>(to.dscale.data ? heads : 0);
    launch(backward_head<Head>, LaunchGrid{blocks_of(heads), dim3(Head::threads), WholeRoom<Head>::bytes},
           operands, lse, to.dq, to.dk, to.dv, to.dscale.data ? scale->data() : nullptr);
    if (to.dscale.data) sum_late(operands.heads, operands.images, scale, to.dscale.data, to.dscale.add);
  });
}

}  // namespace tessera
