#pragma once

// A warp holds its sixteen rows of scores in the layout of the tensor cores: fragments (engine/cuda/mma.h) of
// sixteen rows and eight columns, four numbers a lane. For bf16 the tensor cores multiply; for float and
// double each lane holds the same positions and computes its own products, so that the code that follows is
// shared.

#include "engine/cuda/mma.h"
#include "engine/cuda/reduce.h"
#include "engine/ops/attention/tiles_cuda.h"

namespace tessera {

template <class W, int blocks> using Fragments = W[blocks][4];

// y += rows b for sixteen columns of `rows`; b [16, depth] is in shared memory.
template <int depth>
__device__ inline void multiply_right(const uint32_t (&rows)[4], const bf16* b,
                                      Fragments<float, depth / 8>& y) {
#pragma unroll
  for (int m = 0; m < depth / 8; m += 2) {
    uint32_t columns[2][2];
    load_right(columns, b + 8 * m, Cut<bf16, depth>::stride);
    mma(y[m], rows, columns[0]);
    mma(y[m + 1], rows, columns[1]);
  }
}

// s += a b^T for a [16, depth] and b [8 used, depth] in shared memory; for bf16 the rows of b up to the next
// multiple of sixteen must be zero.
template <int depth, class T, int blocks>
__device__ inline void multiply_rows(const T* a, const T* b, int used, Fragments<Wide<T>, blocks>& s) {
  constexpr int stride = Cut<T, depth>::stride;
  const int lane = own_lane(), g = lane / 4, t = lane % 4;
  if constexpr (std::is_same_v<T, bf16>) {
#pragma unroll
    for (int k = 0; k < depth; k += 16) {
      uint32_t rows[4], columns[2][2];
      load_left(rows, a + k, stride);
#pragma unroll
      for (int n = 0; n < blocks; n += 2) {
        if (n >= used) break;
        load_right_turned(columns, b + 8 * n * stride + k, stride);
        mma(s[n], rows, columns[0]);
        mma(s[n + 1], rows, columns[1]);
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

// A lane's part of an outer product: y += (upper, lower) times a row, for its two rows and its columns.
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

// y += p b for p [16, 8 used] in fragments, zero beyond them, and b [8 used, depth] in shared memory, whose
// rows up to the next multiple of sixteen must be zero.
template <int depth, class T, int blocks>
__device__ inline void multiply_fragments(const Fragments<Wide<T>, blocks>& p, const T* b, int used,
                                          Fragments<Wide<T>, depth / 8>& y) {
  constexpr int stride = Cut<T, depth>::stride;
  const int lane = own_lane();
  if constexpr (std::is_same_v<T, bf16>) {
#pragma unroll
    for (int n = 0; n < blocks; n += 2) {
      if (n >= used) break;
      // what the lanes hold of two blocks of scores is what they give of a factor of sixteen columns
      const uint32_t rows[4] = {pack_pair(p[n][0], p[n][1]), pack_pair(p[n][2], p[n][3]),
                                pack_pair(p[n + 1][0], p[n + 1][1]), pack_pair(p[n + 1][2], p[n + 1][3])};
      multiply_right<depth>(rows, b + 8 * n * stride, y);
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

// y += p^T b for sixteen columns p [count, 16] in shared memory, rows `p_stride` elements apart, and
// b [count, depth]; their rows up to the next multiple of sixteen must be zero.
template <int depth, class T>
__device__ inline void multiply_turned(const T* p, int p_stride, const T* b, int count,
                                       Fragments<Wide<T>, depth / 8>& y) {
  constexpr int stride = Cut<T, depth>::stride;
  const int lane = own_lane(), g = lane / 4, t = lane % 4;
  if constexpr (std::is_same_v<T, bf16>) {
    for (int k = 0; k < count; k += 16) {
      uint32_t rows[4];
      load_left_turned(rows, p + k * p_stride, p_stride);
      multiply_right<depth>(rows, b + k * stride, y);
    }
  } else {
#pragma unroll 1
    for (int k = 0; k < count; ++k)
      multiply_add<depth>(p[k * p_stride + g], p[k * p_stride + g + 8], b + k * stride + 2 * t, y);
  }
}

template <class W> __device__ inline void clear_block(W (&s)[4]) {
#pragma unroll
  for (int e = 0; e < 4; ++e) s[e] = 0;
}

template <class W, int blocks> __device__ inline void clear(Fragments<W, blocks>& s) {
#pragma unroll
  for (int n = 0; n < blocks; ++n) clear_block(s[n]);
}

// Calls f(row, column, half, s) for every number of the first `used` blocks; half is 0 for the lane's upper
// row, 1 for its lower one.
template <class W, int blocks, class F>
__device__ inline void each_score(int used, Fragments<W, blocks>& s, const F& f) {
  const int lane = own_lane();
#pragma unroll
  for (int n = 0; n < blocks; ++n) {
    if (n >= used) break;
#pragma unroll
    for (int e = 0; e < 4; ++e) f(fragment_row(lane, e), 8 * n + fragment_column(lane, e), e / 2, s[n][e]);
  }
}

// Calls f(first column, the lane's numbers) for the first `used` blocks; number e is at row
// fragment_row(lane, e) and column first + fragment_column(lane, e).
template <class W, int blocks, class F>
__device__ inline void each_block(int used, Fragments<W, blocks>& s, const F& f) {
#pragma unroll
  for (int n = 0; n < blocks; ++n) {
    if (n >= used) break;
    f(8 * n, s[n]);
  }
}

// each_block() over the numbers of two matrices.
template <class W, int blocks, class F>
__device__ inline void each_block_pair(int used, Fragments<W, blocks>& s, Fragments<W, blocks>& s2,
                                       const F& f) {
#pragma unroll
  for (int n = 0; n < blocks; ++n) {
    if (n >= used) break;
    f(8 * n, s[n], s2[n]);
  }
}

// each_score() over the numbers of two matrices: f(row, column, half, s, s2).
template <class W, int blocks, class F>
__device__ inline void each_pair(int used, Fragments<W, blocks>& s, Fragments<W, blocks>& s2, const F& f) {
  const int lane = own_lane();
#pragma unroll
  for (int n = 0; n < blocks; ++n) {
    if (n >= used) break;
#pragma unroll
    for (int e = 0; e < 4; ++e)
      f(fragment_row(lane, e), 8 * n + fragment_column(lane, e), e / 2, s[n][e], s2[n][e]);
  }
}

// Reduces over the four lanes that share a row; each gets the result.
template <class By, class W> __device__ inline W row_all(W value) {
  value = By::of(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return By::of(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

// to[j] = the sum of column j of the first `used` blocks over the warp's rows.
template <class W, int blocks>
__device__ inline void column_totals(int used, const Fragments<W, blocks>& s, W* to) {
  const int lane = own_lane();
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

// Whether two numbers may be stored at once from this address on.
template <class T> __device__ inline bool aligned_pair(const T* at) {
  return reinterpret_cast<uintptr_t>(at) % (2 * sizeof(T)) == 0;
}

template <class T> __device__ inline void store_pair(T* to, Wide<T> left, Wide<T> right) {
  if constexpr (std::is_same_v<T, bf16>)
    *reinterpret_cast<uint32_t*>(to) = pack_pair(left, right);
  else
    store_pack<2>(to, Pack<T, 2>{left, right});
}

// to [16, 8] = the lanes' numbers; its rows are `stride` numbers apart, an even stride.
template <class T> __device__ inline void store_block(const Wide<T> (&s)[4], T* to, int stride) {
  const int lane = own_lane();
#pragma unroll
  for (int half = 0; half < 2; ++half)
    store_pair(to + fragment_row(lane, 2 * half) * stride + fragment_column(lane, 0), s[2 * half],
               s[2 * half + 1]);
}

// to [16, 8 used] = s, as store_block() does.
template <class T, int blocks>
__device__ inline void store_tile(const Fragments<Wide<T>, blocks>& s, int used, T* to, int stride) {
#pragma unroll
  for (int n = 0; n < blocks; ++n) {
    if (n >= used) break;
    store_block(s[n], to + 8 * n, stride);
  }
}

// Rows [first, first + 16) of `to`, up to row `count`: factor(half) * y, d numbers each, written or added.
template <int depth, class T, class Factor>
__device__ inline void store_fragments(const Fragments<Wide<T>, depth / 8>& y, const Factor& factor,
                                       const HeadRows<T>& to, bool add, int first, int count, int d) {
  using W = Wide<T>;
  const int lane = own_lane();
#pragma unroll
  for (int m = 0; m < depth / 8; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = first + fragment_row(lane, 2 * half), j = 8 * m + fragment_column(lane, 0);
      if (i >= count || j >= d) continue;
      T* const place = to.row(i) + j;
      const bool two = j + 1 < d;
      W left = factor(half) * y[m][2 * half], right = factor(half) * y[m][2 * half + 1];
      if (add) {
        left += W(place[0]);
        if (two) right += W(place[1]);
      }
      if (two && aligned_pair(place)) {
        store_pair(place, left, right);
      } else {
        place[0] = T(left);
        if (two) place[1] = T(right);
      }
    }
}

// This lane's part of the sum of a * b for a [16, depth] in fragments and b in shared memory.
template <int depth, class T>
__device__ inline Wide<T> products(const Fragments<Wide<T>, depth / 8>& a, const T* b) {
  const int lane = own_lane();
  Wide<T> sum = 0;
#pragma unroll
  for (int m = 0; m < depth / 8; ++m)
#pragma unroll
    for (int e = 0; e < 4; ++e)
      sum += a[m][e] *
             Wide<T>(b[fragment_row(lane, e) * Cut<T, depth>::stride + 8 * m + fragment_column(lane, e)]);
  return sum;
}

}  // namespace tessera
