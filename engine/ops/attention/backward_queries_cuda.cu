// Attention's backward pass by rows of queries: the sums of every row, which everything else needs, dq, and
// the gradients that images share. It passes over the keys twice, forwards for the sums and backwards for dq;
// the last tile stays in registers, and if it is the only one the second pass reads nothing. Where one block
// holds all scores of a head ("whole"), P and ds stay in shared memory and the keys' gradients are computed
// too.

#include "engine/core/dispatch.h"
#include "engine/ops/attention/query_rows_cuda.h"

namespace tessera {

namespace {

// The sums of a chunk of images for the gradients that images share; null where not wanted.
template <class W> struct SharedSums {
  W* scale;         // [chunks, blocks of rows, H]
  W *prior, *bias;  // [chunks, H, N, N]
};

// Adds a block's shares of the gradients that images share; the first image of a chunk writes them. `matrix`
// is the offset of the chunk's and head's matrix.
template <class T>
__device__ inline void add_shares(const SharedSums<Wide<T>>& sums, int64_t matrix, bool first,
                                  const BlockPlaces<T>& places, const ChainShares<Wide<T>> (&shares)[4]) {
  const auto add = [&](Wide<T>* to, Wide<T> value) { *to = first ? value : *to + value; };
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    if (!places.inside[e]) continue;
    const int64_t at = matrix + places.at[e].element();
    if (sums.prior) add(sums.prior + at, shares[e].prior);
    if (sums.bias) add(sums.bias + at, shares[e].bias);
  }
}

// The keys' gradients where P and ds [queries, keys] are in shared memory: dv = P^T dy, dk = scale ds^T q,
// and the gates' gradients.
template <int depth, class T>
__device__ inline void keys_of_whole(const AttentionOperands<T>& in, const QueryRoom<T, depth>& room,
                                     int64_t image, int head, Wide<T> scale, const KeyTargets<T>& to) {
  using W = Wide<T>;
  using Room = QueryRoom<T, depth>;
  const auto dk = rows_of(to.dk, in.keys, image, head, in.d), dv = rows_of(to.dv, in.keys, image, head, in.d);
  const int threads = static_cast<int>(blockDim.x);
  for (int first = own_warp() * warp_rows; first < in.keys; first += threads / warp * warp_rows) {
    Fragments<W, depth / 8> sum;
    if (dv.data) {
      clear<W, depth / 8>(sum);
      multiply_turned<depth>(room.p + first, Room::score_stride, room.dy, in.queries, sum);
      store_fragments<depth>(
          sum, [](int) { return W(1); }, dv, to.dv.add, first, in.keys, in.d);
    }
    if (dk.data) {
      clear<W, depth / 8>(sum);
      multiply_turned<depth>(room.ds + first, Room::score_stride, room.q, in.queries, sum);
      store_fragments<depth>(
          sum, [=](int) { return scale; }, dk, to.dk.add, first, in.keys, in.d);
    }
  }
  if (!to.dgates.data) return;
  for (int j = static_cast<int>(threadIdx.x); j < in.keys; j += threads) {
    W sum = room.gate_rows[j];
    for (int w = 0; w * warp_rows < in.queries; ++w) sum += room.gate_columns[w * Cut<T, depth>::columns + j];
    store_gate(to.dgates, in, image, head, j, sum);
  }
}

// Block (chunk of images, head, block of queries).
template <class T, int depth, bool whole, ChainTerms terms>
__global__ void __launch_bounds__(Cut<T, depth>::warps* warp, (Cut<T, depth>::residents(terms)))
    backward_queries(AttentionOperands<T> in, int row_blocks, int64_t images_a_chunk, const Wide<T>* lse,
                     TokenHeads<T> dq, RowSums<Wide<T>> sums, SharedSums<Wide<T>> shared,
                     KeyTargets<T> to_keys) {
  wait_for_previous_kernel();
  using W = Wide<T>;
  using Tiles = Cut<T, depth>;
  using Room = QueryRoom<T, depth>;
  using Rows = QueryRows<T, depth, terms>;
  const BlockRows block(row_blocks, in.heads);
  const int64_t chunk = block.image;
  const int lane = own_lane();
  const int head = block.head, own = block.own, first_query = block.first + own;
  const bool works = first_query < in.queries;
  const Room room(shared_memory<unsigned char>(), block.rows, in.keys, in.terms.gates, whole);
  const int64_t matrix = (chunk * in.heads + head) * in.keys * in.keys;
  const int last_tile = (in.keys - 1) / Tiles::columns;
  const int64_t first_image = chunk * images_a_chunk,
                end_image = min(in.images, first_image + images_a_chunk);
  T* const q_rows = room.q + own * Tiles::stride;
  W dscale = 0;

  for (int64_t image = first_image; image < end_image; ++image) {
    const auto k = rows_of(in.k, in.keys, image, head, in.d), v = rows_of(in.v, in.keys, image, head, in.d);
    const int64_t first_of_head = (image * in.heads + head) * in.queries;
    __syncthreads();  // every warp has read the previous image
    load_tile<depth>(rows_of(in.q, in.queries, image, head, in.d), block.first, in.queries - block.first,
                     in.d, in.packed, block.rows, room.q);
    load_tile<depth>(rows_of(in.dy, in.queries, image, head, in.d), block.first, in.queries - block.first,
                     in.d, in.packed, block.rows, room.dy);
    if constexpr (may_have(terms, ChainTerms::content_decay))
      load_gates(in.terms, image, head, in.heads, in.keys, room.gate);
    const ScoreChain<T, terms> chain(in.terms, image, head, in.keys, room.gate);
    const auto lse_of = [&](int row) {
      return exp_ready<T>(first_query + row < in.queries ? lse[first_of_head + first_query + row] : W(0));
    };
    Rows rows{in, chain, first_query, {lse_of(lane / 4), lse_of(lane / 4 + 8)}};
    ScorePair<W, Tiles::blocks> pair;
    const auto used = [&](int tile) {
      return (min(Tiles::columns, in.keys - tile * Tiles::columns) + 7) / 8;
    };
    const auto take_tile = [&](int tile) {
      const int first = tile * Tiles::columns, count = min(Tiles::columns, in.keys - first);
      __syncthreads();
      load_tile<depth>(k, first, count, in.d, in.packed, (count + 15) / 16 * 16, room.k);
      load_tile<depth>(v, first, count, in.d, in.packed, (count + 15) / 16 * 16, room.v);
      __syncthreads();
      if (works)
        multiply_pair<depth, T, Tiles::blocks>(q_rows, room.k, room.dy + own * Tiles::stride, room.v,
                                               used(tile), pair);
    };

    for (int tile = 0; tile <= last_tile; ++tile) {
      take_tile(tile);
      if (works) rows.add_tile(tile * Tiles::columns, used(tile), pair);
    }
    rows.close();
    if (!whole) rows.store_sums(sums, first_of_head);

    Fragments<W, depth / 8> sum;
    clear<W, depth / 8>(sum);
    for (int tile = last_tile; tile >= 0; --tile) {
      const int first = tile * Tiles::columns;
      if (tile < last_tile) take_tile(tile);
      if (!works) continue;
      if constexpr (Rows::plain) {
        if (tile < last_tile)
          make_probabilities<Tiles::blocks>(in, chain, first_query, first, used(tile), rows.shift, pair.raw);
        rows.plain_ds(used(tile), pair);
        if constexpr (whole)
          store_tile(pair.dp, used(tile), room.p + own * Room::score_stride, Room::score_stride);
      } else {
        rows.any_ds(
            first, used(tile), pair,
            [&](int column, const BlockPlaces<T>& places, const W(&p)[4], const ChainShares<W>(&to)[4]) {
              add_shares(shared, matrix, image == first_image, places, to);
              if constexpr (whole)
                store_block(p, room.p + own * Room::score_stride + column, Room::score_stride);
            });
      }
      if constexpr (whole)
        store_tile(pair.raw, used(tile), room.ds + own * Room::score_stride, Room::score_stride);
      multiply_fragments<depth, T, Tiles::blocks>(pair.raw, room.k, used(tile), sum);
    }
    if (const auto to = rows_of(dq, in.queries, image, head, in.d); works && to.data)
      store_fragments<depth>(
          sum, [&](int) { return chain.scale.factor; }, to, dq.add, first_query, in.queries, in.d);
    // ds_ij (q_i . k_j) over all keys is q_i . sum_j ds_ij k_j
    if (works && shared.scale) dscale += Rows::plain ? products<depth>(sum, q_rows) : rows.dscale;
    if constexpr (may_have(terms, ChainTerms::content_decay))
      if (works && in.terms.gates)
        rows.template store_gates<whole>(pair, used(0), room, sums, first_of_head, own);
    if constexpr (whole) {
      __syncthreads();
      keys_of_whole(in, room, image, head, chain.scale.factor, to_keys);
    }
  }
  if (!shared.scale) return;
  dscale = block_sum(dscale);
  if (threadIdx.x == 0) shared.scale[(chunk * row_blocks + block.number) * in.heads + head] = dscale;
}

// The images whose shared gradients one block sums. The chunks are few enough that their matrices fit in
// memory and many enough to keep a large GPU busy; the sizes alone fix them.
int64_t images_a_chunk(const AttentionSizes& s, int row_blocks, bool matrices) {
  constexpr int64_t most_elements = int64_t{1} << 26, wanted_blocks = 2048;
  if (!matrices) return 1;
  const int64_t fitting = most_elements / std::max<int64_t>(1, s.heads * s.keys * s.keys);
  const int64_t wanted = (wanted_blocks - 1) / (s.heads * row_blocks) + 1;
  const int64_t chunks = std::clamp<int64_t>(std::min(fitting, wanted), 1, s.images);
  return (s.images + chunks - 1) / chunks;
}

template <class T, int depth, bool whole>
void run_queries(const AttentionSizes& s, const AttentionOperands<T>& operands, const RowBlocks& rows,
                 const Wide<T>* lse, const RowSums<Wide<T>>& sums, const AttentionGradients<T>& to) {
  using W = Wide<T>;
  const int64_t heads = s.heads, matrix = s.keys * s.keys, prior_heads = operands.terms.prior_heads;
  const int64_t grain = images_a_chunk(s, rows.count, to.dprior.data || to.dbias.data);
  const int64_t chunks = (s.images + grain - 1) / grain;
  const auto room = [](const Target<T>& target, int64_t elements) { return target.data ? elements : 0; };
  const LateParts<T> scale = late_parts<T>(room(to.dscale, chunks * rows.count * heads));
  const Scratch<W> prior(room(to.dprior, chunks * heads * matrix)),
      bias(room(to.dbias, chunks * heads * matrix));
  const auto wanted = [](const Target<T>& target, W* data) { return target.data ? data : nullptr; };
  const SharedSums<W> shared{wanted(to.dscale, scale->data()), wanted(to.dprior, prior.data()),
                             wanted(to.dbias, bias.data())};
  const QueryRoom<T, depth> layout(nullptr, rows.rows(), static_cast<int>(s.keys), operands.terms.gates,
                                   whole);
  with_terms<T>(operands.terms, [&](auto which) {
    launch(backward_queries<T, depth, whole, which>,
           LaunchGrid{blocks_of(chunks * heads * rows.count), dim3(rows.warps * warp), layout.bytes},
           operands, rows.count, grain, lse, to.dq, sums, shared, KeyTargets<T>{to.dk, to.dv, to.dgates});
  });
  if (to.dscale.data) sum_late(heads, chunks * rows.count, scale, to.dscale.data, to.dscale.add);
  if (to.dprior.data) total(prior_heads * matrix, chunks * heads / prior_heads, prior.data(), to.dprior);
  if (to.dbias.data) total(heads * matrix, chunks, bias.data(), to.dbias);
}

}  // namespace

template <class T>
bool backward_by_queries(const AttentionSizes& sizes, const AttentionOperands<T>& operands,
                         const Wide<T>* lse, const RowSums<Wide<T>>& sums, const AttentionGradients<T>& to) {
  bool all = false;
  with_depth<T>(sizes.head_dim, [&](auto depth) {
    const RowBlocks rows(sizes.queries, Cut<T, depth>::warps);
    all = rows.count == 1 && sizes.keys <= Cut<T, depth>::columns;
    if (all)
      run_queries<T, depth, true>(sizes, operands, rows, lse, sums, to);
    else
      run_queries<T, depth, false>(sizes, operands, rows, lse, sums, to);
  });
  return all;
}

TESSERA_FOR_FLOATS(backward_by_queries)

}  // namespace tessera
