#pragma once

// What attention's kernels are made of. A warp owns sixteen rows of a matrix, queries or keys, and holds its
// scores as the tensor cores leave them: fragments (engine/cuda/mma.h) of sixteen rows and eight columns,
// four numbers a lane. For bf16 the products are theirs; for float and double the same lanes hold the same
// places and multiply for themselves, so that all that is done to a score is written once.

#include "engine/cuda/launch.h"
#include "engine/cuda/mma.h"
#include "engine/cuda/reduce.h"
#include "engine/ops/attention_kernels.h"
#include "engine/ops/fast_math.h"
#include "engine/ops/score_chain.h"

namespace tessera {

template <class T> struct AttentionOperands;

inline constexpr int warp_rows = 16;  // rows of a warp

// How a head of at most `depth` numbers is cut: into tiles of 8 `blocks` columns, at most `warps` warps a
// block. By what fits in registers and shared memory; blocks is even.
template <class T, int depth> struct Cut {
  static constexpr int blocks = std::is_same_v<T, bf16> ? (depth <= 32   ? 10
                                                           : depth <= 64 ? 8
                                                                         : 4)
                                : sizeof(T) == 4        ? (depth <= 64 ? 8 : 4)
                                                        : (depth <= 64 ? 4 : 2);
  static constexpr int warps = std::is_same_v<T, bf16> ? (depth <= 32 ? 5 : 4) : sizeof(T) == 4 ? 4 : 2;
  // Blocks that a multiprocessor is to hold at a time, at the least: the compiler keeps to their registers.
  static constexpr int residents = std::is_same_v<T, bf16> ? 2 : 1;
  static constexpr int columns = 8 * blocks;
  // Elements from one row in shared memory to the next: 16 bytes more than a row, so that the eight rows and
  // four columns which a warp reads at once lie in different banks.
  static constexpr int stride = depth + 16 / static_cast<int>(sizeof(T));
};

template <class W, int blocks> using Fragments = W[blocks][4];

// The rows of one head of one image where they lie.
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

// to [rows, depth] in shared memory = `count` rows from `first` on, d numbers each; zeros for the rest. By
// the whole block. `packed`: rows are whole packs of 16 bytes.
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

// s += a b^T for a [16, depth], b [8 used, depth], rows in shared memory.
template <int depth, class T, int blocks>
__device__ inline void multiply_rows(const T* a, const T* b, int used, Fragments<Wide<T>, blocks>& s) {
  constexpr int stride = Cut<T, depth>::stride;
  const int lane = static_cast<int>(threadIdx.x) % warp, g = lane / 4, t = lane % 4;
  if constexpr (std::is_same_v<T, bf16>) {
#pragma unroll
    for (int k = 0; k < depth; k += 16) {
      const T *upper = a + g * stride + k + 2 * t, *lower = upper + 8 * stride;
      const uint32_t rows[4] = {load_pair(upper), load_pair(lower), load_pair(upper + 8),
                                load_pair(lower + 8)};
#pragma unroll
      for (int n = 0; n < blocks; ++n) {
        if (n >= used) break;
        const T* column = b + (8 * n + g) * stride + k + 2 * t;
        const uint32_t columns[2] = {load_pair(column), load_pair(column + 8)};
        mma(s[n], rows, columns);
      }
    }
  } else {
#pragma unroll 2
    for (int k = 0; k < depth; ++k) {
      const T upper = a[g * stride + k], lower = a[(g + 8) * stride + k];
#pragma unroll
      for (int n = 0; n < blocks; ++n) {
        if (n >= used) break;
        const T *column = b + (8 * n + 2 * t) * stride + k, left = column[0], right = column[stride];
        s[n][0] += upper * left;
        s[n][1] += upper * right;
        s[n][2] += lower * left;
        s[n][3] += lower * right;
      }
    }
  }
}

// A lane's part of y += (upper, lower) row: what its two rows have of one column, times a row of its columns.
template <int depth, class T>
__device__ inline void multiply_add(T upper, T lower, const T* row, Fragments<T, depth / 8>& y) {
#pragma unroll
  for (int m = 0; m < depth / 8; ++m) {
    const T left = row[8 * m], right = row[8 * m + 1];
    y[m][0] += upper * left;
    y[m][1] += upper * right;
    y[m][2] += lower * left;
    y[m][3] += lower * right;
  }
}

// y += p b for p [16, 8 used] in fragments, zero after them, b [8 used, depth] in shared memory, its rows up
// to the next multiple of sixteen zero.
template <int depth, class T, int blocks>
__device__ inline void multiply_fragments(const Fragments<Wide<T>, blocks>& p, const T* b, int used,
                                          Fragments<Wide<T>, depth / 8>& y) {
  constexpr int stride = Cut<T, depth>::stride;
  const int lane = static_cast<int>(threadIdx.x) % warp;
  if constexpr (std::is_same_v<T, bf16>) {
#pragma unroll
    for (int n = 0; n < blocks; n += 2) {
      if (n >= used) break;
      // what the lanes hold of two blocks of scores is what they give of a factor of sixteen columns
      const uint32_t rows[4] = {pack_pair(p[n][0], p[n][1]), pack_pair(p[n][2], p[n][3]),
                                pack_pair(p[n + 1][0], p[n + 1][1]), pack_pair(p[n + 1][2], p[n + 1][3])};
#pragma unroll
      for (int m = 0; m < depth / 8; ++m) {
        uint32_t columns[2];
        load_columns(columns, b + (8 * n + lane % 16) * stride + 8 * m);
        mma(y[m], rows, columns);
      }
    }
  } else {
#pragma unroll
    for (int n = 0; n < blocks; ++n) {
      if (n >= used) break;
#pragma unroll 1
      for (int pair = 0; pair < 4; ++pair) {  // of columns of p, and the lane of this row that holds it
        const T* row = b + (8 * n + 2 * pair) * stride + 2 * (lane % 4);
#pragma unroll
        for (int k = 0; k < 2; ++k, row += stride) {
          const T upper = __shfl_sync(0xffffffffu, p[n][k], lane / 4 * 4 + pair),
                  lower = __shfl_sync(0xffffffffu, p[n][2 + k], lane / 4 * 4 + pair);
          multiply_add<depth>(upper, lower, row, y);
        }
      }
    }
  }
}

// y += p^T b for sixteen columns p [count, 16] in shared memory, its rows `p_stride` apart, and b [count,
// depth]; up to the next multiple of sixteen the rows are zero.
template <int depth, class T>
__device__ inline void multiply_turned(const T* p, int p_stride, const T* b, int count,
                                       Fragments<Wide<T>, depth / 8>& y) {
  constexpr int stride = Cut<T, depth>::stride;
  const int lane = static_cast<int>(threadIdx.x) % warp, g = lane / 4, t = lane % 4;
  if constexpr (std::is_same_v<T, bf16>) {
    for (int k = 0; k < count; k += 16) {
      uint32_t rows[4];
      load_rows_turned(rows, p + (k + lane % 8 + lane / 16 * 8) * p_stride + lane / 8 % 2 * 8);
#pragma unroll
      for (int m = 0; m < depth / 8; ++m) {
        uint32_t columns[2];
        load_columns(columns, b + (k + lane % 16) * stride + 8 * m);
        mma(y[m], rows, columns);
      }
    }
  } else {
#pragma unroll 1
    for (int k = 0; k < count; ++k)
      multiply_add<depth>(p[k * p_stride + g], p[k * p_stride + g + 8], b + k * stride + 2 * t, y);
  }
}

template <class W, int blocks> __device__ inline void clear(Fragments<W, blocks>& s) {
#pragma unroll
  for (int n = 0; n < blocks; ++n)
#pragma unroll
    for (int e = 0; e < 4; ++e) s[n][e] = 0;
}

// f(row, column, half, s) for every number of the first `used` blocks: half is 0 for the lane's upper row, 1
// for its lower one.
template <class W, int blocks, class F>
__device__ inline void each_score(int used, Fragments<W, blocks>& s, const F& f) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
#pragma unroll
  for (int n = 0; n < blocks; ++n) {
    if (n >= used) break;
#pragma unroll
    for (int e = 0; e < 4; ++e) f(fragment_row(lane, e), 8 * n + fragment_column(lane, e), e / 2, s[n][e]);
  }
}

// The same with the numbers of two matrices at that place.
template <class W, int blocks, class F>
__device__ inline void each_pair(int used, Fragments<W, blocks>& s, Fragments<W, blocks>& s2, const F& f) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
#pragma unroll
  for (int n = 0; n < blocks; ++n) {
    if (n >= used) break;
#pragma unroll
    for (int e = 0; e < 4; ++e)
      f(fragment_row(lane, e), 8 * n + fragment_column(lane, e), e / 2, s[n][e], s2[n][e]);
  }
}

// The place of a score, or the nearest in the matrix for one outside of it: what its terms read is always
// there, so that no branch keeps their loads apart.
template <class T> __device__ inline At place_of(const AttentionOperands<T>& in, int i, int j) {
  return {min(i, in.queries - 1), min(j, in.keys - 1), in.keys};
}

// Over the four lanes that share a row; each has the result.
template <class By, class W> __device__ inline W row_all(W value) {
  value = By::of(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return By::of(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

// to[j] = the sum of column j of the first `used` blocks over the warp's rows.
template <class W, int blocks>
__device__ inline void column_totals(int used, const Fragments<W, blocks>& s, W* to) {
  const int lane = static_cast<int>(threadIdx.x) % warp;
#pragma unroll
  for (int n = 0; n < blocks; ++n) {
    if (n >= used) break;
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      W sum = s[n][e] + s[n][e + 2];
#pragma unroll
      for (int step = 4; step < warp; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
      if (lane < 4) to[8 * n + fragment_column(lane, e)] = sum;
    }
  }
}

// Rows [first, first + 16) of `to`, as far as they are below `count`: factor(half) * y, d numbers each,
// written or added to.
template <int depth, class T, class Factor>
__device__ inline void store_fragments(const Fragments<Wide<T>, depth / 8>& y, const Factor& factor,
                                       const HeadRows<T>& to, bool add, int first, int count, int d) {
  using W = Wide<T>;
  const int lane = static_cast<int>(threadIdx.x) % warp;
#pragma unroll
  for (int m = 0; m < depth / 8; ++m)
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int i = first + fragment_row(lane, e), j = 8 * m + fragment_column(lane, e);
      if (i >= count || j >= d) continue;
      T& place = to.row(i)[j];
      const W value = factor(e / 2) * y[m][e];
      place = T(add ? W(place) + value : value);
    }
}

// exp of a score less its row's maximum or log-sum-exp: by the special function unit where what it is rounded
// to is coarser than that is.
template <class T> __device__ inline Wide<T> exp_of_score(Wide<T> x) {
  if constexpr (std::is_same_v<T, bf16>)
    return __expf(x);
  else
    return fast_exp(x);
}

// gate [n] = this image's and head's gates without gaps, if there are any. By the whole block.
template <class T>
__device__ inline void load_gates(const BatchTerms<T>& terms, int64_t image, int head, int heads, int n,
                                  Wide<T>* gate) {
  if (!terms.gates) return;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x))
    gate[i] = Wide<T>(terms.gates[(image * n + i) * heads + head]);
}

// --- on the host ---

// Rows cut into blocks of whole warps, all of as many warps as leave the fewest idle.
struct RowBlocks {
  int count, warps;

  RowBlocks(int64_t rows, int most_warps) {
    const int tiles = static_cast<int>(std::max<int64_t>(1, (rows + warp_rows - 1) / warp_rows));
    count = (tiles + most_warps - 1) / most_warps;
    warps = (tiles + count - 1) / count;
  }
  int rows() const { return warps * warp_rows; }
};

// What every kernel is given.
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
    constexpr int v_ = pack_of<T>;
    const auto whole = [](const TokenHeads<const T>& x) { return x.stride % v_ == 0 && aligned(x.data, v_); };
    packed = d % v_ == 0 && whole(q) && whole(k) && whole(v) && whole(dy);
  }
};

// f(integral_constant<int, depth>) with a depth that holds d numbers: of bf16 the least of four, fewer for
// the others, which are for checks more than for speed. Fails above 128.
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

inline dim3 blocks_of(int64_t count) { return dim3(static_cast<unsigned>(count)); }

}  // namespace tessera
