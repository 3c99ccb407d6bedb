// Attention's forward kernel. Each warp holds sixteen queries and passes once over the keys, tile by tile,
// with a running maximum and sum of each row (Milakov and Gimelshein, 2018; Dao et al., 2022).

#include <limits>

#include "engine/core/dispatch.h"
#include "engine/ops/attention/whole_cuda.h"

namespace tessera {

namespace {

// The softmax of a lane's two rows, whose scores arrive tile by tile.
template <class T> struct RunningSoftmax {
  using W = Wide<T>;
  W most[2] = {-std::numeric_limits<W>::infinity(), -std::numeric_limits<W>::infinity()};
  W sum[2] = {0, 0};  // of this lane's columns

  // s = exp(s - the maximum so far); y, the sum over earlier tiles, is rescaled to the same maximum.
  template <int blocks, int depth_blocks>
  __device__ void take(int used, Fragments<W, blocks>& s, Fragments<W, depth_blocks>& y) {
    W largest[2] = {most[0], most[1]}, base[2];
    each_score<W, blocks>(
        used, s, [&](int, int, int half, W value) { largest[half] = Most::of(value, largest[half]); });
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      largest[half] = row_all<Most>(largest[half]);
      base[half] = exp_ready<T>(finite_base(largest[half]));
      const W shrink = exp_less<T>(exp_ready<T>(1), most[half], base[half]);
      most[half] = largest[half];
      sum[half] *= shrink;
#pragma unroll
      for (int m = 0; m < depth_blocks; ++m) {
        y[m][2 * half] *= shrink;
        y[m][2 * half + 1] *= shrink;
      }
    }
    each_score<W, blocks>(used, s, [&](int, int, int half, W& value) {
      value = exp_less<T>(exp_ready<T>(1), value, base[half]);
      sum[half] += value;
    });
  }
};

// Block (image, head, block of queries). y [B, Nq, H d], lse [B, H, Nq] or null.
template <class T, int depth, ChainTerms terms>
__global__ void __launch_bounds__(Cut<T, depth>::warps* warp, (Cut<T, depth>::forward_residents(terms)))
    attend(AttentionOperands<T> in, int row_blocks, T* y, Wide<T>* lse) {
  wait_for_previous_kernel();
  using W = Wide<T>;
  using Tiles = Cut<T, depth>;
  const BlockRows block(row_blocks, in.heads);
  const int64_t image = block.image;
  const int head = block.head, first_query = block.first + block.own;
  T* const q_rows = shared_memory<T>();
  T* const k_tile = q_rows + block.rows * Tiles::stride;
  T* const v_tile = k_tile + Tiles::columns * Tiles::stride;
  W* const gate = reinterpret_cast<W*>(v_tile + Tiles::columns * Tiles::stride);

  const auto k = rows_of(in.k, in.keys, image, head, in.d), v = rows_of(in.v, in.keys, image, head, in.d);
  load_tile<depth>(rows_of(in.q, in.queries, image, head, in.d), block.first, in.queries - block.first, in.d,
                   in.packed, block.rows, q_rows);
  if constexpr (may_have(terms, ChainTerms::content_decay))
    load_gates(in.terms, image, head, in.heads, in.keys, gate);
  const ScoreChain<T, terms> chain(in.terms, image, head, in.keys, gate);

  RunningSoftmax<T> softmax;
  Fragments<W, depth / 8> sum;
  clear<W, depth / 8>(sum);
  for (int first = 0; first < in.keys; first += Tiles::columns) {
    const int count = min(Tiles::columns, in.keys - first), used = (count + 7) / 8;
    __syncthreads();  // every warp has read the previous tiles
    load_tile<depth>(k, first, count, in.d, in.packed, (count + 15) / 16 * 16, k_tile);
    load_tile<depth>(v, first, count, in.d, in.packed, (count + 15) / 16 * 16, v_tile);
    __syncthreads();
    if (first_query >= in.queries) continue;
    Fragments<W, Tiles::blocks> s;
    clear<W, Tiles::blocks>(s);
    multiply_rows<depth, T, Tiles::blocks>(q_rows + block.own * Tiles::stride, k_tile, used, s);
    make_scores<Tiles::blocks>(in, chain, first_query, first, used, s);
    softmax.take(used, s, sum);
    multiply_fragments<depth, T, Tiles::blocks>(s, v_tile, used, sum);
  }
  if (first_query >= in.queries) return;

  const W total[2] = {row_all<Plus>(softmax.sum[0]), row_all<Plus>(softmax.sum[1])};
  const HeadRows<T> to{y + image * in.queries * in.heads * in.d + head * in.d, int64_t{in.heads} * in.d};
  store_fragments<depth>(
      sum, [&](int half) { return 1 / total[half]; }, to, false, first_query, in.queries, in.d);
  if (!lse) return;
  const int lane = own_lane();
#pragma unroll
  for (int half = 0; half < 2; ++half)
    if (const int i = first_query + lane / 4 + 8 * half; lane % 4 == 0 && i < in.queries)
      lse[(image * in.heads + head) * in.queries + i] = softmax.most[half] + std::log(total[half]);
}

}  // namespace

template <>
template <class T>
void AttentionKernels<Cuda>::forward(const AttentionSizes& sizes, TokenHeads<const T> q,
                                     TokenHeads<const T> k, TokenHeads<const T> v, const BatchTerms<T>& terms,
                                     T* y, Wide<T>* lse) {
  if (sizes.images * sizes.queries == 0) return;
  const AttentionOperands<T> operands(sizes, q, k, v, nullptr, terms);
  if constexpr (std::is_same_v<T, bf16>)
    if (attend_whole(operands, y, lse)) return;
  with_depth<T>(sizes.head_dim, [&](auto depth) {
    using Tiles = Cut<T, depth>;
    const RowBlocks rows(sizes.queries, Tiles::warps);
    const size_t elements = static_cast<size_t>((rows.rows() + 2 * Tiles::columns) * Tiles::stride);
    const size_t gates = terms.gates ? static_cast<size_t>(sizes.keys) * sizeof(Wide<T>) : 0;
    with_terms<T>(terms, [&](auto which) {
      launch(attend<T, depth, which>,
             LaunchGrid{blocks_of(sizes.images * sizes.heads * rows.count), dim3(rows.warps * warp),
                        elements * sizeof(T) + gates},
             operands, rows.count, y, lse);
    });
  });
}

TESSERA_FOR_FLOATS(AttentionKernels<Cuda>::forward)

}  // namespace tessera
