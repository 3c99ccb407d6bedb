// Attention's backward: two kernels that both make the scores again, one by rows of queries, one by rows of
// keys, so that each sum has one owner and nothing is added in the order of arrival. The first goes through
// the keys twice: for the sums of its rows, and back again for dq; the tile at the turn stays in registers,
// and where all keys fit in one, there is no second time. The second has dk and dv from the rows' sums. Where
// one block holds all scores of a head ("whole"), the first does all: P and ds stay in shared memory for it.

#include "engine/core/dispatch.h"
#include "engine/cuda/index.h"
#include "engine/ops/attention_tiles_cuda.h"

namespace tessera {

namespace {

// What the rows of queries leave for the rows of keys, [B, H, Nq]: P = share exp(s - lse), dP's mean under P.
// P is divided by its sum, which the rounding of s and lse leaves a little off 1: else ds would not sum to 0
// over a row.
template <class W> struct RowSums {
  W *share, *mean;
  W* gate;  // [B, H, N]: of the gates' gradients, the queries' part; null where not wanted
};

// Where a chunk of images sums the gradients that images share; null where not wanted.
template <class W> struct SharedSums {
  W* scale;         // [chunks, blocks of rows, H]
  W *prior, *bias;  // [chunks, H, N, N]
};

// What the rows of keys write.
template <class T> struct KeyTargets {
  TokenHeads<T> dk, dv;
  Target<T> dgates;
};

// The shared memory of a block of queries. `whole`: with the scores' own, see above.
template <class T, int depth> struct QueryRoom {
  using W = Wide<T>;
  using Tiles = Cut<T, depth>;
  static constexpr int score_stride = Tiles::columns + 16 / static_cast<int>(sizeof(T));
  T *q, *dy;        // [rows, depth]
  T *k, *v;         // a tile [columns, depth]
  T *p, *ds;        // [rows, columns]
  W* gate;          // [keys]
  W* gate_rows;     // [rows]: the sums of a gate's shares as query
  W* gate_columns;  // [warps, columns]: as key, in the rows of each warp
  size_t bytes;

  TESSERA_HD QueryRoom(unsigned char* memory, int rows, int keys, bool gates, bool whole) : bytes(0) {
    const auto take = [&](auto*& part, int elements) {
      using Element = std::remove_reference_t<decltype(*part)>;
      part = reinterpret_cast<Element*>(memory + bytes);
      bytes += (static_cast<size_t>(elements) * sizeof(Element) + 15) / 16 * 16;
    };
    take(q, rows * Tiles::stride);
    take(dy, rows * Tiles::stride);
    take(k, Tiles::columns * Tiles::stride);
    take(v, Tiles::columns * Tiles::stride);
    take(p, whole ? rows * score_stride : 0);
    take(ds, whole ? rows * score_stride : 0);
    take(gate, gates ? keys : 0);
    take(gate_rows, gates && whole ? rows : 0);
    take(gate_columns, gates && whole ? rows / warp_rows * Tiles::columns : 0);
  }
};

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

// to = value for the first image of a chunk, += for the others.
template <class W> __device__ inline void add_share(W* to, bool first, W value) {
  *to = first ? value : *to + value;
}

// dgates of token i.
template <class T>
__device__ inline void store_gate(const Target<T>& dgates, const AttentionOperands<T>& in, int64_t image,
                                  int head, int i, Wide<T> value) {
  T& place = dgates.data[(image * in.keys + i) * in.heads + head];
  place = T(dgates.add ? Wide<T>(place) + value : value);
}

// The rows of keys where P and ds [queries, keys] are in shared memory: dv = P^T dy, dk = scale ds^T q, and
// the gates' gradients.
template <int depth, class T>
__device__ inline void keys_of_whole(const AttentionOperands<T>& in, const QueryRoom<T, depth>& room,
                                     int64_t image, int head, Wide<T> scale, const KeyTargets<T>& to) {
  using W = Wide<T>;
  using Room = QueryRoom<T, depth>;
  const auto dk = rows_of(to.dk, in.keys, image, head, in.d), dv = rows_of(to.dv, in.keys, image, head, in.d);
  const int threads = static_cast<int>(blockDim.x);
  for (int first = static_cast<int>(threadIdx.x) / warp * warp_rows; first < in.keys;
       first += threads / warp * warp_rows) {
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
template <class T, int depth, bool whole>
__global__ void __launch_bounds__(Cut<T, depth>::warps* warp, Cut<T, depth>::residents)
    backward_queries(AttentionOperands<T> in, int row_blocks, int64_t images_a_chunk, const Wide<T>* lse,
                     TokenHeads<T> dq, RowSums<Wide<T>> sums, SharedSums<Wide<T>> shared,
                     KeyTargets<T> to_keys) {
  using W = Wide<T>;
  using Tiles = Cut<T, depth>;
  using Room = QueryRoom<T, depth>;
  int64_t chunk = blockIdx.x;
  const int rows = static_cast<int>(blockDim.x) / warp * warp_rows;
  const int row_block = static_cast<int>(split_off(chunk, row_blocks)), first_row = row_block * rows;
  const int head = static_cast<int>(split_off(chunk, in.heads));
  const int lane = static_cast<int>(threadIdx.x) % warp;
  const int own = static_cast<int>(threadIdx.x) / warp * warp_rows, first_query = first_row + own;
  const bool works = first_query < in.queries;
  const Room room(shared_memory<unsigned char>(), rows, in.keys, in.terms.gates, whole);
  const int64_t matrix = (chunk * in.heads + head) * in.keys * in.keys;
  const int last_tile = (in.keys - 1) / Tiles::columns;
  const int64_t first_image = chunk * images_a_chunk,
                end_image = min(in.images, first_image + images_a_chunk);
  W dscale = 0;

  for (int64_t image = first_image; image < end_image; ++image) {
    const auto k = rows_of(in.k, in.keys, image, head, in.d), v = rows_of(in.v, in.keys, image, head, in.d);
    const int64_t first_of_head = (image * in.heads + head) * in.queries;
    __syncthreads();  // the image before has been read
    load_tile<depth>(rows_of(in.q, in.queries, image, head, in.d), first_row, in.queries - first_row, in.d,
                     in.packed, rows, room.q);
    load_tile<depth>(rows_of(in.dy, in.queries, image, head, in.d), first_row, in.queries - first_row, in.d,
                     in.packed, rows, room.dy);
    load_gates(in.terms, image, head, in.heads, in.keys, room.gate);
    const ScoreChain<T> chain(in.terms, image, head, in.keys, room.gate);
    ScorePair<W, Tiles::blocks> pair;
    W row_lse[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = first_query + lane / 4 + 8 * half;
      row_lse[half] = i < in.queries ? lse[first_of_head + i] : W(0);
    }
    const auto take_tile = [&](int tile) {
      const int first = tile * Tiles::columns, count = min(Tiles::columns, in.keys - first);
      __syncthreads();
      load_tile<depth>(k, first, count, in.d, in.packed, (count + 15) / 16 * 16, room.k);
      load_tile<depth>(v, first, count, in.d, in.packed, (count + 15) / 16 * 16, room.v);
      __syncthreads();
      if (works)
        multiply_pair<depth, T, Tiles::blocks>(room.q + own * Tiles::stride, room.k,
                                               room.dy + own * Tiles::stride, room.v, (count + 7) / 8, pair);
    };
    const auto blocks_used = [&](int tile) {
      return (min(Tiles::columns, in.keys - tile * Tiles::columns) + 7) / 8;
    };

    W mass[2] = {0, 0}, mean[2] = {0, 0};
    for (int tile = 0; tile <= last_tile; ++tile) {
      take_tile(tile);
      if (!works) continue;
      const auto take = [&](int row, int column, int half, W raw, W dp) {
        const int i = first_query + row, j = tile * Tiles::columns + column;
        const W p = exp_of_score<T>(chain.forward(raw, place_of(in, i, j)) - row_lse[half]);
        mass[half] += j < in.keys ? p : W(0);
        mean[half] += j < in.keys ? p * dp : W(0);
      };
      each_pair<W, Tiles::blocks>(blocks_used(tile), pair.raw, pair.dp, take);
    }
    W share[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      share[half] = 1 / row_all<Plus>(mass[half]);
      mean[half] = row_all<Plus>(mean[half]) * share[half];
      const int i = first_query + lane / 4 + 8 * half;
      if (whole || i >= in.queries || lane % 4 != 0) continue;
      sums.share[first_of_head + i] = share[half];
      sums.mean[first_of_head + i] = mean[half];
    }

    Fragments<W, depth / 8> sum;
    clear<W, depth / 8>(sum);
    W dgate[2] = {0, 0};
    for (int tile = last_tile; tile >= 0; --tile) {
      if (tile < last_tile) take_tile(tile);
      if (!works) continue;
      // raw becomes ds, and dp the gate's share
      const auto give = [&](int row, int column, int half, W& raw, W& dp) {
        const int i = first_query + row, j = tile * Tiles::columns + column;
        const bool inside = i < in.queries && j < in.keys;
        const At at = place_of(in, i, j);
        W p = exp_of_score<T>(chain.forward(raw, at) - row_lse[half]) * share[half];
        ChainShares<W> back = chain.backward(p * (dp - mean[half]), raw, at);
        if (!inside) {
          p = 0;
          back = {0, 0, 0, 0, 0};
        }
        if (inside && shared.prior)
          add_share(shared.prior + matrix + at.element(), image == first_image, back.prior);
        if (inside && shared.bias)
          add_share(shared.bias + matrix + at.element(), image == first_image, back.bias);
        dscale += back.scale;
        dgate[half] += back.gate;
        raw = back.ds;
        dp = back.gate;
        if constexpr (whole) {
          room.p[(own + row) * Room::score_stride + column] = T(p);
          room.ds[(own + row) * Room::score_stride + column] = T(back.ds);
        }
      };
      each_pair<W, Tiles::blocks>(blocks_used(tile), pair.raw, pair.dp, give);
      multiply_fragments<depth, T, Tiles::blocks>(pair.raw, room.k, blocks_used(tile), sum);
    }
    if (const auto to = rows_of(dq, in.queries, image, head, in.d); works && to.data)
      store_fragments<depth>(
          sum, [&](int) { return chain.scale.factor; }, to, dq.add, first_query, in.queries, in.d);
    if (works && in.terms.gates) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const W as_query = row_all<Plus>(dgate[half]);
        const int row = lane / 4 + 8 * half, i = first_query + row;
        if (lane % 4 != 0) continue;
        if (whole) room.gate_rows[own + row] = as_query;
        if (!whole && sums.gate && i < in.queries) sums.gate[first_of_head + i] = as_query;
      }
      if constexpr (whole)
        column_totals<W, Tiles::blocks>(blocks_used(0), pair.dp,
                                        room.gate_columns + own / warp_rows * Tiles::columns);
    }
    if constexpr (whole) {
      __syncthreads();
      keys_of_whole(in, room, image, head, chain.scale.factor, to_keys);
    }
  }
  if (!shared.scale) return;
  dscale = block_sum(dscale);
  if (threadIdx.x == 0) shared.scale[(chunk * row_blocks + row_block) * in.heads + head] = dscale;
}

// Block (image, head, block of keys). Rows are keys here, and the columns of a tile are queries.
template <class T, int depth>
__global__ void __launch_bounds__(Cut<T, depth>::warps* warp, Cut<T, depth>::residents)
    backward_keys(AttentionOperands<T> in, int row_blocks, const Wide<T>* lse, RowSums<Wide<T>> sums,
                  KeyTargets<T> to) {
  using W = Wide<T>;
  using Tiles = Cut<T, depth>;
  int64_t image = blockIdx.x;
  const int rows = static_cast<int>(blockDim.x) / warp * warp_rows;
  const int first_row = static_cast<int>(split_off(image, row_blocks)) * rows;
  const int head = static_cast<int>(split_off(image, in.heads));
  const int lane = static_cast<int>(threadIdx.x) % warp;
  const int own = static_cast<int>(threadIdx.x) / warp * warp_rows, first_key = first_row + own;
  T* const k_rows = shared_memory<T>();
  T* const v_rows = k_rows + rows * Tiles::stride;
  T* const q_tile = v_rows + rows * Tiles::stride;
  T* const dy_tile = q_tile + Tiles::columns * Tiles::stride;
  W* const tile_lse = reinterpret_cast<W*>(dy_tile + Tiles::columns * Tiles::stride);
  W *const tile_share = tile_lse + Tiles::columns, *const tile_mean = tile_share + Tiles::columns;
  W* const gate = tile_mean + Tiles::columns;
  const auto q = rows_of(in.q, in.queries, image, head, in.d),
             dy = rows_of(in.dy, in.queries, image, head, in.d);
  const int64_t first_of_head = (image * in.heads + head) * in.queries;

  load_tile<depth>(rows_of(in.k, in.keys, image, head, in.d), first_row, in.keys - first_row, in.d, in.packed,
                   rows, k_rows);
  load_tile<depth>(rows_of(in.v, in.keys, image, head, in.d), first_row, in.keys - first_row, in.d, in.packed,
                   rows, v_rows);
  load_gates(in.terms, image, head, in.heads, in.keys, gate);
  const ScoreChain<T> chain(in.terms, image, head, in.keys, gate);
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
      tile_lse[c] = lse[first_of_head + first + c];
      tile_share[c] = sums.share[first_of_head + first + c];
      tile_mean[c] = sums.mean[first_of_head + first + c];
    }
    __syncthreads();
    if (first_key >= in.keys) continue;
    ScorePair<W, Tiles::blocks> pair;
    multiply_pair<depth, T, Tiles::blocks>(k_rows + own * Tiles::stride, q_tile, v_rows + own * Tiles::stride,
                                           dy_tile, used, pair);
    each_pair<W, Tiles::blocks>(used, pair.raw, pair.dp, [&](int row, int column, int half, W& raw, W& dp) {
      const int j = first_key + row;
      const bool inside = column < count && j < in.keys;
      const At at = place_of(in, first + column, j);
      const W p = exp_of_score<T>(chain.forward(raw, at) - tile_lse[column]) * tile_share[column];
      const ChainShares<W> back = chain.backward(p * (dp - tile_mean[column]), raw, at);
      dgate[half] += inside ? back.gate : W(0);
      raw = inside ? p : W(0);
      dp = inside ? back.ds : W(0);
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

// Images whose shared gradients are summed in one block: so few chunks that their matrices fit in memory, and
// no fewer than keep a large GPU busy. By the sizes alone.
int64_t images_a_chunk(const AttentionSizes& s, int row_blocks, bool matrices) {
  constexpr int64_t most_elements = int64_t{1} << 26, wanted_blocks = 2048;
  if (!matrices) return 1;
  const int64_t fitting = most_elements / std::max<int64_t>(1, s.heads * s.keys * s.keys);
  const int64_t wanted = (wanted_blocks - 1) / (s.heads * row_blocks) + 1;
  const int64_t chunks = std::clamp<int64_t>(std::min(fitting, wanted), 1, s.images);
  return (s.images + chunks - 1) / chunks;
}

// target [n] = the sum of `count` parts in their order; written or added to.
template <class T> void total(int64_t n, int64_t count, const Wide<T>* parts, const Target<T>& target) {
  if (n > 0) sum_parts(n, count, parts, Wide<T>(1), target.data, target.add);
}

template <class T>
void total_scale(int64_t parts, int64_t heads, const Wide<T>* scale, const Target<T>& target) {
  column_sums(
      parts, heads, [=] __device__(int64_t i, int64_t j) { return scale[i * heads + j]; }, Wide<T>(1),
      target.data, target.add);
}

template <class W> struct Zero {
  TESSERA_HD W operator()(int64_t) const { return 0; }
};

// Nothing was seen: gradients that images share are 0.
template <class T>
void zero_shared(const AttentionSizes& s, int64_t prior_heads, const AttentionGradients<T>& to) {
  using W = Wide<T>;
  const auto zero = [](int64_t n, const Target<T>& target) {
    if (target.data && !target.add) map(n, target.data, false, Zero<W>{});
  };
  const int64_t matrix = s.keys * s.keys;
  zero(s.heads, to.dscale);
  zero(prior_heads * matrix, to.dprior);
  zero(s.heads * matrix, to.dbias);
}

template <class T, int depth, bool whole>
void run_queries(const AttentionOperands<T>& operands, const AttentionSizes& s, const RowBlocks& rows,
                 const Wide<T>* lse, const RowSums<Wide<T>>& sums, const AttentionGradients<T>& to) {
  using W = Wide<T>;
  const int64_t heads = s.heads, matrix = s.keys * s.keys, prior_heads = operands.terms.prior_heads;
  const int64_t grain = images_a_chunk(s, rows.count, to.dprior.data || to.dbias.data);
  const int64_t chunks = (s.images + grain - 1) / grain;
  const auto room = [](const Target<T>& target, int64_t elements) { return target.data ? elements : 0; };
  const Scratch<W> scale(room(to.dscale, chunks * rows.count * heads)),
      prior(room(to.dprior, chunks * heads * matrix)), bias(room(to.dbias, chunks * heads * matrix));
  const auto wanted = [](const Target<T>& target, W* data) { return target.data ? data : nullptr; };
  const SharedSums<W> shared{wanted(to.dscale, scale.data()), wanted(to.dprior, prior.data()),
                             wanted(to.dbias, bias.data())};
  const QueryRoom<T, depth> layout(nullptr, rows.rows(), static_cast<int>(s.keys), operands.terms.gates,
                                   whole);
  launch(backward_queries<T, depth, whole>,
         LaunchGrid{blocks_of(chunks * heads * rows.count), dim3(rows.warps * warp), layout.bytes}, operands,
         rows.count, grain, lse, to.dq, sums, shared, KeyTargets<T>{to.dk, to.dv, to.dgates});
  if (to.dscale.data) total_scale(chunks * rows.count, heads, scale.data(), to.dscale);
  if (to.dprior.data) total(prior_heads * matrix, chunks * heads / prior_heads, prior.data(), to.dprior);
  if (to.dbias.data) total(heads * matrix, chunks, bias.data(), to.dbias);
}

template <class T, int depth>
void run_keys(const AttentionOperands<T>& operands, const AttentionSizes& s, const Wide<T>* lse,
              const RowSums<Wide<T>>& sums, const KeyTargets<T>& to) {
  using Tiles = Cut<T, depth>;
  const RowBlocks rows(s.keys, Tiles::warps);
  const int64_t tiles = 2 * (rows.rows() + Tiles::columns) * Tiles::stride;
  const int64_t numbers = 3 * Tiles::columns + (operands.terms.gates ? s.keys : 0);
  launch(backward_keys<T, depth>,
         LaunchGrid{blocks_of(s.images * s.heads * rows.count), dim3(rows.warps * warp),
                    static_cast<size_t>(tiles) * sizeof(T) + static_cast<size_t>(numbers) * sizeof(Wide<T>)},
         operands, rows.count, lse, sums, to);
}

}  // namespace

template <>
template <class T>
void AttentionKernels<Cuda>::backward(const AttentionSizes& sizes, TokenHeads<const T> q,
                                      TokenHeads<const T> k, TokenHeads<const T> v,
                                      const BatchTerms<T>& terms, const Wide<T>* lse, const T* dy,
                                      const AttentionGradients<T>& to) {
  using W = Wide<T>;
  const AttentionOperands<T> operands(sizes, q, k, v, dy, terms);
  const int64_t heads = sizes.heads, rows_in_all = sizes.images * heads * sizes.queries;
  const Scratch<W> row_sums(3 * std::max<int64_t>(1, rows_in_all));
  const RowSums<W> sums{row_sums.data(), row_sums.data() + rows_in_all,
                        to.dgates.data ? row_sums.data() + 2 * rows_in_all : nullptr};
  const KeyTargets<T> keys{to.dk, to.dv, to.dgates};
  with_depth<T>(sizes.head_dim, [&](auto depth) {
    if (rows_in_all == 0) zero_shared(sizes, terms.prior_heads, to);
    const RowBlocks rows(sizes.queries, Cut<T, depth>::warps);
    const bool whole = rows.count == 1 && sizes.keys <= Cut<T, depth>::columns;
    if (rows_in_all > 0) {
      if (whole)
        run_queries<T, depth, true>(operands, sizes, rows, lse, sums, to);
      else
        run_queries<T, depth, false>(operands, sizes, rows, lse, sums, to);
    }
    const bool wanted = to.dk.data || to.dv.data || to.dgates.data;
    if (wanted && sizes.images * sizes.keys > 0 && (rows_in_all == 0 || !whole))
      run_keys<T, depth>(operands, sizes, lse, sums, keys);
  });
}

TESSERA_FOR_FLOATS(AttentionKernels<Cuda>::backward)

}  // namespace tessera
