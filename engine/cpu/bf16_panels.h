#pragma once

// Many rows of bf16 against one factor that is packed once, as panel_gemm.h for float: the factor lies in
// panels of 32 columns. 144 rows of a panel's product at a time are rounded to bf16 at once, or wait in the
// first cache for what is done with them before (an activation, an addition).

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

#include "engine/core/scratch.h"
#include "engine/cpu/bf16_gemm.h"
#include "engine/cpu/gemm.h"

namespace tessera {

// The number of elements of a packed B [depth, n].
constexpr int64_t bf16_packed_elements(int64_t depth, int64_t n) {
  return whole_bf16_panels(n) * 2 * pairs_of(depth);
}

// Packs the panel of op(B) [depth, n] that begins at `column`. The panels follow one another.
inline void pack_bf16_panel(const Bf16Kernels& kernels, int64_t depth, int64_t n, const Factor<bf16>& b,
                            int64_t column, bf16* panels) {
  const auto pack = b.transposed ? kernels.interleave_transposed : kernels.interleave;
  pack(depth, std::min(bf16_panel, n - column), b.from(0, column).data, b.stride,
       panels + column * 2 * pairs_of(depth), 2 * bf16_panel);
}

inline void pack_bf16_panels(const Bf16Kernels& kernels, int64_t depth, int64_t n, const Factor<bf16>& b,
                             bf16* panels) {
  for (int64_t j = 0; j < n; j += bf16_panel) pack_bf16_panel(kernels, depth, n, b, j, panels);
}

// op(A) [rows, depth] as a left factor: where it lies if its rows are whole pairs, else copied into this
// thread's scratch memory `which`.
template <int which>
LeftPairs left_factor(const Bf16Kernels& kernels, int64_t rows, int64_t depth, const Factor<bf16>& a) {
  if (a.transposed)
    return kernels.left_of_transposed(depth, rows, a.data, a.stride,
                                      thread_scratch<bf16, which>(left_elements(depth, rows)));
  if (depth % 2 == 0) return {a.data, a.stride, 2};
  bf16* copy = thread_scratch<bf16, which>(rows * (depth + 1));
  for (int64_t i = 0; i < rows; ++i) {
    std::copy_n(a.data + i * a.stride, depth, copy + i * (depth + 1));
    copy[i * (depth + 1) + depth] = bf16(0.0f);
  }
  return {copy, depth + 1, 2};
}

// y [rows, columns] = block or, with `add`, += block, rounded to bf16.
inline void store_block(const Bf16Kernels& kernels, int64_t rows, int64_t columns, const float* block,
                        bool add, bf16* y, int64_t stride) {
  constexpr float one = 1;
  kernels.store(rows, columns, {block, bf16_panel}, &one, 0, add, y, stride);
}

// The rows of a panel's product at a time.
inline constexpr int64_t bf16_block_rows = 144;
using Bf16Block = std::array<float, bf16_block_rows * bf16_panel>;

// c [rows, columns] = start + A B or, with `add`, += A B, for at most a panel of columns and the rows of a
// block, whose memory is at `block`.
inline void multiply_bf16_block(const Bf16Kernels& kernels, int64_t rows, int64_t columns, int64_t pairs,
                                const LeftPairs& a, const bf16* panel, FloatRows start, bool add, bf16* c,
                                int64_t stride, float* block) {
  const RightPairs right{panel, 2 * bf16_panel};
  if (!add && columns % bf16_lanes == 0)
    return kernels.multiply_rounded(rows, columns, pairs, a, right, start, c, stride);
  kernels.multiply(rows, whole_bf16_vectors(columns), pairs, a, right, 1, start, {block, bf16_panel});
  store_block(kernels, rows, columns, block, add, c, stride);
}

// Calls use(i, rows, j, columns, left, panel) for the blocks of a product of a left factor with the panels:
// of rows i on and columns j on. Before each the lines that it has of the `outputs` [m, n], unless null,
// whose rows are `stride` apart, are asked for, because writing would wait for them.
template <class Use>
void for_bf16_blocks(int64_t m, int64_t n, int64_t depth, const LeftPairs& a, const bf16* panels,
                     std::initializer_list<const bf16*> outputs, int64_t stride, Use&& use) {
  const int64_t pieces = (m + bf16_block_rows - 1) / bf16_block_rows;
  for (int64_t j = 0; j < n; j += bf16_panel)
    for (int64_t i = 0, piece = 0; piece < pieces; ++piece) {
      const int64_t rows = (m - i) / (pieces - piece);
      for (const bf16* output : outputs)
        for (int64_t r = i; output && r < i + rows; ++r) __builtin_prefetch(output + r * stride + j, 1);
      use(i, rows, j, std::min(bf16_panel, n - j),
          LeftPairs{a.data + i * a.row, a.row, a.pair, a.parts, a.part}, panels + j * 2 * pairs_of(depth));
      i += rows;
    }
}

// Products of a left factor with the panels. done(i, rows, j, columns, block) takes each block of the result,
// of rows i on and columns j on, and writes it to the `outputs` (for_bf16_blocks()). A row of `block` has 32
// numbers. `start`, one row for all, has whole vectors; null means zeros.
template <class Done>
void multiply_bf16_panels(const Bf16Kernels& kernels, int64_t m, int64_t n, int64_t depth, const LeftPairs& a,
                          const bf16* panels, const float* start, std::initializer_list<const bf16*> outputs,
                          int64_t stride, Done&& done) {
  alignas(64) Bf16Block block;
  const auto use = [&](int64_t i, int64_t rows, int64_t j, int64_t columns, const LeftPairs& left,
                       const bf16* panel) {
    kernels.multiply(rows, whole_bf16_vectors(columns), pairs_of(depth), left, {panel, 2 * bf16_panel}, 1,
                     {start ? start + j : nullptr, 0}, {block.data(), bf16_panel});
    done(i, rows, j, columns, block.data());
  };
  for_bf16_blocks(m, n, depth, a, panels, outputs, stride, use);
}

// c [m, n] = start + the product or, with `add`, += it; row i begins at c + i * stride.
inline void multiply_bf16_panels(const Bf16Kernels& kernels, int64_t m, int64_t n, int64_t depth,
                                 const LeftPairs& a, const bf16* panels, const float* start, bool add,
                                 bf16* c, int64_t stride) {
  alignas(64) Bf16Block block;
  const auto use = [&](int64_t i, int64_t rows, int64_t j, int64_t columns, const LeftPairs& left,
                       const bf16* panel) {
    multiply_bf16_block(kernels, rows, columns, pairs_of(depth), left, panel,
                        {start ? start + j : nullptr, 0}, add, c + i * stride + j, stride, block.data());
  };
  for_bf16_blocks(m, n, depth, a, panels, {c}, stride, use);
}

}  // namespace tessera
