#pragma once

// The operands of attention's kernels and how they are divided among blocks and warps: a warp owns sixteen
// rows of one matrix, queries or keys, and passes over the other one tile by tile.

#include "engine/core/error.h"
#include "engine/cuda/index.h"
#include "engine/cuda/launch.h"
#include "engine/ops/attention/attention_kernels.h"
#include "engine/ops/attention/score_chain.h"

namespace tessera {

template <class T> struct AttentionOperands;

inline constexpr int warp_rows = 16;  // rows of a warp

// The tile sizes for heads of width at most `depth`: 8 `blocks` columns a tile, at most `warps` warps a
// block, chosen so that registers and shared memory suffice. `blocks` is even.
template <class T, int depth> struct Cut {
  static constexpr int blocks = std::is_same_v<T, bf16> ? (depth <= 32   ? 10
                                                           : depth <= 64 ? 8
                                                                         : 4)
                                : sizeof(T) == 4        ? (depth <= 64 ? 8 : 4)
                                                        : (depth <= 64 ? 4 : 2);
  static constexpr int warps = std::is_same_v<T, bf16> ? (depth <= 32 ? 5 : 4) : sizeof(T) == 4 ? 4 : 2;
  // The least number of blocks that a multiprocessor holds at a time, which bounds the registers of a thread.
  // The forward kernel holds one fragment of scores, the others two.
  static constexpr bool narrow = std::is_same_v<T, bf16>, small = narrow && depth <= 32;
  static constexpr int residents(ChainTerms terms) {
    return narrow && depth <= 16 && terms == ChainTerms::plain ? 3 : narrow ? 2 : 1;
  }
  static constexpr int forward_residents(ChainTerms terms) {
    return small ? (terms == ChainTerms::plain ? 4 : 3) : narrow ? 2 : 1;
  }
  static constexpr int columns = 8 * blocks;
  // Elements from one row in shared memory to the next: 16 bytes more than a row, so that the eight rows and
  // four columns which a warp reads at once lie in different banks.
  static constexpr int stride = depth + 16 / static_cast<int>(sizeof(T));
};

// The rows of a block and of its warps; blocks are numbered (image, head, block of rows).
struct BlockRows {
  int64_t image = blockIdx.x;  // or a chunk of images
  int rows = static_cast<int>(blockDim.x) / warp * warp_rows;
  int own = own_warp() * warp_rows;  // the warp's first row in the block
  int number;                        // of the block, within its head
  int head;
  int first;  // the block's first row in the matrix

  __device__ BlockRows(int row_blocks, int heads)
      : number(static_cast<int>(split_off(image, row_blocks))),
        head(static_cast<int>(split_off(image, heads))),
        first(number * rows) {}
};

// The rows of one head of one image, in place.
template <class T> struct HeadRows {
  T* data;
  int64_t stride;
  __device__ T* row(int i) const { return data + i * stride; }
};

template <class T>
__device__ inline HeadRows<T> rows_of(const TokenHeads<T>& x, int64_t tokens, int64_t image, int head,
                                      int d) {
  return {x.data ? x.data + image * tokens * x.stride + int64_t{head} * d : nullptr, x.stride};
}

// Copies `count` rows of d numbers from row `first` on to `to` [rows, depth] in shared memory and fills the
// rest with zeros. The whole block takes part. `packed`: rows are whole packs of 16 bytes.
template <int depth, class T>
__device__ inline void load_tile(const HeadRows<const T>& from, int first, int count, int d, bool packed,
                                 int rows, T* to) {
  constexpr int v = pack_of<T>, packs = depth / v, stride = Cut<T, depth>::stride;
  for (int p = static_cast<int>(threadIdx.x); p < rows * packs; p += static_cast<int>(blockDim.x)) {
    const int i = p / packs, j = p % packs * v;
    const T* row = from.row(first + i);
    Pack<T, v> pack;
    if (packed && i < count && j < d) {
      pack = load_pack<v>(row + j);
    } else {
#pragma unroll
      for (int k = 0; k < v; ++k) pack.at[k] = i < count && j + k < d ? row[j + k] : T(0.0f);
    }
    store_pack<v>(to + i * stride + j, pack);
  }
}

// The position of a score, clamped to the matrix: the terms may read it unconditionally, so that no branch
// separates their loads.
template <class T> __device__ inline At place_of(const AttentionOperands<T>& in, int i, int j) {
  return {min(i, in.queries - 1), min(j, in.keys - 1), in.keys};
}

// gate [n] = the gates of this image and head, contiguous, if there are any. The whole block takes part.
template <class T>
__device__ inline void load_gates(const BatchTerms<T>& terms, int64_t image, int head, int heads, int n,
                                  Wide<T>* gate) {
  if (!terms.gates) return;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x))
    gate[i] = Wide<T>(terms.gates[(image * n + i) * heads + head]);
}

// --- on the host ---

// Rows divided into blocks of equally many warps, as few of them idle as possible.
struct RowBlocks {
  int count, warps;

  RowBlocks(int64_t rows, int most_warps) {
    const int tiles = static_cast<int>(std::max<int64_t>(1, (rows + warp_rows - 1) / warp_rows));
    count = (tiles + most_warps - 1) / most_warps;
    warps = (tiles + count - 1) / count;
  }
  int rows() const { return warps * warp_rows; }
};

// Whether every row is aligned to packs; true without rows.
template <class T> bool in_packs(const TokenHeads<T>& x) {
  return x.stride % pack_of<T> == 0 && aligned(x.data, pack_of<T>);
}

// The operands of every kernel.
template <class T> struct AttentionOperands {
  int64_t images;
  int heads, queries, keys, d;
  TokenHeads<const T> q, k, v, dy;
  BatchTerms<T> terms;
  bool packed;  // every row of every operand is whole packs of 16 bytes

  AttentionOperands(const AttentionSizes& s, TokenHeads<const T> its_q, TokenHeads<const T> its_k,
                    TokenHeads<const T> its_v, const T* its_dy, const BatchTerms<T>& its_terms)
      : images(s.images),
        heads(static_cast<int>(s.heads)),
        queries(static_cast<int>(s.queries)),
        keys(static_cast<int>(s.keys)),
        d(static_cast<int>(s.head_dim)),
        q(its_q),
        k(its_k),
        v(its_v),
        dy{its_dy, s.heads * s.head_dim},
        terms(its_terms) {
    packed = d % pack_of<T> == 0 && in_packs(q) && in_packs(k) && in_packs(v) && in_packs(dy);
  }
};

// Calls f(integral_constant<int, depth>) with a depth of at least d: for bf16 the least of four, for other
// types, whose speed matters less, one of fewer. Fails above 128.
template <class T, class F> void with_depth(int64_t d, const F& f) {
  check(d <= 128, "attention: heads of ", d, " numbers; on a GPU they are at most 128 wide, so take more ",
        "heads or --device cpu");
  if constexpr (std::is_same_v<T, bf16>)
    if (d <= 16) return f(std::integral_constant<int, 16>{});
  if (d <= 32) return f(std::integral_constant<int, 32>{});
  if constexpr (sizeof(T) < 8)
    if (d <= 64) return f(std::integral_constant<int, 64>{});
  f(std::integral_constant<int, 128>{});
}

// Calls f(integral_constant<ChainTerms, terms>) with the terms that are present, or `any`. The combinations
// of the papers' models have kernels of their own in bf16; other types, whose speed matters less, use `any`.
template <class T, class F> void with_terms(const BatchTerms<T>& terms, const F& f) {
  const ChainTerms wanted = terms_of(terms);
  const auto pick = [&]<ChainTerms... known>(std::integer_sequence<ChainTerms, known...>) {
    const auto on = [&]<ChainTerms one>() { return f(std::integral_constant<ChainTerms, one>{}), true; };
    return ((wanted == known && on.template operator()<known>()) || ...);
  };
  if constexpr (std::is_same_v<T, bf16>)
    if (pick(std::integer_sequence<ChainTerms, ChainTerms::plain, ChainTerms::prior, ChainTerms::bias,
                                   ChainTerms::bias_and_mask, ChainTerms::fixed_decay,
                                   ChainTerms::content_decay>{}))
      return;
  f(std::integral_constant<ChainTerms, ChainTerms::any>{});
}

inline dim3 blocks_of(int64_t count) { return dim3(static_cast<unsigned>(count)); }

}  // namespace tessera
