#pragma once

// Attention of bf16 heads that one block holds whole: at most 80 tokens of at most 64 numbers, with no terms
// but the scale and the diagonal mask. It computes what the kernels for any size do (attention_cuda.cu,
// backward_queries_cuda.cu) with less than half of their instructions, because all sizes but the last block's
// are known at compile time. A warp owns sixteen queries and then sixteen keys.

#include "engine/ops/attention/fragments_cuda.h"
#include "engine/ops/attention/scores_cuda.h"

namespace tessera {

// They return false, and do nothing, for other heads.
bool attend_whole(const AttentionOperands<bf16>& operands, bf16* y, float* lse);
bool backward_whole(const AttentionOperands<bf16>& operands, const float* lse,
                    const AttentionGradients<bf16>& to);

// Heads of at most `depth_` numbers, with 8 (blocks_ - 1) < tokens <= 8 blocks_.
template <int depth_, int blocks_> struct WholeHead {
  static constexpr int depth = depth_, blocks = blocks_, tiles = (blocks + 1) / 2;
  static constexpr int rows = warp_rows * tiles, threads = warp * tiles;
  static constexpr int stride = Cut<bf16, depth>::stride;  // from one row in shared memory to the next
  static constexpr int elements = rows * stride;           // of q, k, v or dy there
  static constexpr int score_stride = rows + 8;
  static constexpr int packs = depth / 8;  // of a row, 16 bytes each
  // Blocks that a multiprocessor is to hold at a time: by the registers of their warps, and no more than 16,
  // the most that some have.
  static constexpr int forward_residents = std::min(16, (depth <= 32 ? 30 : 20) / tiles),
                       backward_residents = std::min(16, (depth <= 32 ? 20 : 15) / tiles);
};

// Calls f(WholeHead<depth, blocks>{}) for these heads. Returns false for others.
template <class F> bool with_whole(const AttentionOperands<bf16>& in, const F& f) {
  constexpr int most_blocks = 10, most_depth = 64;
  const bool whole = in.images > 0 && in.queries == in.keys && in.keys <= 8 * most_blocks &&
                     in.d <= most_depth && in.packed && terms_of(in.terms) == ChainTerms::plain;
  if (!whole) return false;
  const auto with_blocks = [&]<int blocks>(std::integral_constant<int, blocks>) {
    if ((in.keys + 7) / 8 != blocks) return false;
    if (in.d <= 16)
      f(WholeHead<16, blocks>{});
    else if (in.d <= 32)
      f(WholeHead<32, blocks>{});
    else if (in.d <= 48)
      f(WholeHead<48, blocks>{});
    else
      f(WholeHead<64, blocks>{});
    return true;
  };
  return [&]<int... before>(std::integer_sequence<int, before...>) {
    return (with_blocks(std::integral_constant<int, before + 1>{}) || ...);
  }
  (std::make_integer_sequence<int, most_blocks>{});
}

// The image and head of a block.
struct WholePlace {
  uint32_t image;
  int head;

  __device__ explicit WholePlace(int heads)
      : image(blockIdx.x / static_cast<uint32_t>(heads)),
        head(static_cast<int>(blockIdx.x - image * static_cast<uint32_t>(heads))) {}

  // Token i of the head. Token numbers and strides fit in 32 bits, given the memory of a GPU.
  template <class T> __device__ T* token(const TokenHeads<T>& x, int tokens, int d, int i) const {
    const uint32_t row = image * static_cast<uint32_t>(tokens) + static_cast<uint32_t>(i);
    return x.data + uint64_t{row} * static_cast<uint32_t>(x.stride) + head * d;
  }
};

// The packs of one of `threads` threads that share a head or sixteen rows of it: calls f(0, 1, ..., row,
// first number).
template <class Head, class F>
__device__ inline void each_pack(unsigned thread, unsigned threads, const F& f) {
#pragma unroll
  for (unsigned o = 0; o < Head::packs / 2; ++o) {
    const unsigned p = thread + o * threads;
    f(o, static_cast<int>(p / Head::packs), static_cast<int>(p % Head::packs * 8));
  }
}

// Copies heads one after another into shared memory, padded with zeros. A thread loads all its packs before
// it stores the first one.
template <class Head, int count>
__device__ inline void load_heads(const WholePlace& place, const TokenHeads<const bf16> (&from)[count],
                                  int tokens, int d, bf16* to) {
  using Pairs = Pack<uint32_t, 4>;  // one instruction sets it to 0
  Pairs held[count][Head::packs / 2] = {};
  each_pack<Head>(threadIdx.x, Head::threads, [&](unsigned o, int i, int j) {
    if (i >= tokens || j >= d) return;
#pragma unroll
    for (int c = 0; c < count; ++c)
      held[c][o] = *reinterpret_cast<const Pairs*>(place.token(from[c], tokens, d, i) + j);
  });
  each_pack<Head>(threadIdx.x, Head::threads, [&](unsigned o, int i, int j) {
#pragma unroll
    for (int c = 0; c < count; ++c)
      *reinterpret_cast<Pairs*>(to + c * Head::elements + i * Head::stride + j) = held[c][o];
  });
}

// A warp's rows [16, depth] as the left factor of products.
template <class Head> struct LeftRows {
  uint32_t at[Head::depth / 16][4];

  __device__ explicit LeftRows(const bf16* rows) {
#pragma unroll
    for (int k = 0; k < Head::depth / 16; ++k) load_left(at[k], rows + 16 * k, Head::stride);
  }

  // s = these rows times b^T, b [16, depth].
  __device__ void multiply(const bf16* b, Fragments<float, 2>& s) const {
    clear<float, 2>(s);
#pragma unroll
    for (int k = 0; k < Head::depth / 16; ++k) {
      uint32_t columns[2][2];
      load_right_turned(columns, b + 16 * k, Head::stride);
      mma(s[0], at[k], columns[0]);
      mma(s[1], at[k], columns[1]);
    }
  }
};

// Calls f(n, e) for a lane's numbers in the blocks of a tile that exist.
template <class Head, class F> __device__ inline void each_number(int tile, const F& f) {
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    if (2 * tile + n >= Head::blocks) break;
#pragma unroll
    for (int e = 0; e < 4; ++e) f(n, e);
  }
}

// Which of a warp's scores are masked: those of keys beyond the last and, with the diagonal mask, those of a
// token with itself.
template <class Head> struct WholeMask {
  int diagonal;      // the tile in which the warp's queries meet themselves; -1: that is not masked
  bool left, right;  // whether of the diagonal this lane has numbers of its even, its odd columns
  int keys_of_last;  // that the last block has from this lane's first column on

  __device__ explicit WholeMask(const AttentionOperands<bf16>& in)
      : diagonal(in.terms.mask_diagonal ? own_warp() : -1) {
    const int row = fragment_row(own_lane(), 0), column = fragment_column(own_lane(), 0);
    left = row == column;
    right = row == column + 1;
    keys_of_last = in.keys - 8 * (Head::blocks - 1) - column;
  }

  __device__ void apply(int tile, Fragments<float, 2>& s, float value) const {
    if (tile == diagonal) {
      if (left) s[0][0] = s[1][2] = value;
      if (right) s[0][1] = s[1][3] = value;
    }
    if (tile < Head::tiles - 1) return;
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (e % 2 >= keys_of_last) s[(Head::blocks - 1) % 2][e] = value;
    if (Head::blocks % 2 == 1) clear_block(s[1]);
  }
};

// Writes or adds factor(half) * y to the warp's sixteen tokens from `first` on, up to `tokens`, of the head
// of `to`. Packs are assembled in `rows` [16, depth], the warp's own part of shared memory.
template <class Head, class Factor>
__device__ inline void store_rows(const WholePlace& place, const Fragments<float, Head::depth / 8>& y,
                                  const Factor& factor, const TokenHeads<bf16>& to, int first, int tokens,
                                  int d, bf16* rows) {
  if (to.add)
    return store_fragments<Head::depth>(y, factor, HeadRows<bf16>{place.token(to, tokens, d, 0), to.stride},
                                        true, first, tokens, d);
  __syncwarp();  // the warp has read its earlier content
#pragma unroll
  for (int m = 0; m < Head::packs; ++m) {
    const float scaled[4] = {factor(0) * y[m][0], factor(0) * y[m][1], factor(1) * y[m][2],
                             factor(1) * y[m][3]};
    store_block(scaled, rows + 8 * m, Head::stride);
  }
  __syncwarp();
  each_pack<Head>(threadIdx.x % warp, warp, [&](unsigned, int i, int j) {
    if (first + i < tokens && j < d)
      store_pack<8>(place.token(to, tokens, d, first + i) + j, load_pack<8>(rows + i * Head::stride + j));
  });
}

}  // namespace tessera
