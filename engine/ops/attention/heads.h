#pragma once

// What attention's CPU kernels share: a head's operands where they lie in memory, and how its queries are
// cut.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "engine/core/parallel.h"
#include "engine/ops/attention/attention_kernels.h"
#include "engine/ops/attention/panels.h"
#include "engine/ops/attention/rows.h"

namespace tessera {

// Queries are handled in blocks of nearly equal size whose scores and gradients fit the first cache. Where
// the keys are many the blocks are larger than that: keys and values come from the second cache once for
// each. (96 was measured in f32 and in bf16.)
template <class W> int64_t block_of_queries(int64_t queries, int64_t key_columns) {
  constexpr int64_t cache = 24 << 10, least = 96;
  const int64_t row = 2 * std::max<int64_t>(1, key_columns) * static_cast<int64_t>(sizeof(W));
  const int64_t most = chunk_length(std::max<int64_t>(least, cache / row));
  const int64_t blocks = std::max<int64_t>(1, (queries + most - 1) / most);
  return (queries + blocks - 1) / blocks;
}

// A pointer to token `first` of the head; null for a null operand.
template <class T, class U>
U* tokens_of(const HeadOfImage<T>& h, const TokenHeads<U>& x, int64_t tokens, int64_t first = 0) {
  return x.data ? x.data + (h.image * tokens + first) * x.stride + h.head * h.sizes.head_dim : nullptr;
}

// Prefetches the cache lines of rows of d numbers, `stride` apart, but for the part of a first line that
// began before them: another head has it. It must be inlined: g++ takes a function that only prefetches for
// one without effect, and drops the call.
template <bool written, class T>
__attribute__((always_inline)) inline void prefetch_rows(const T* rows, int64_t count, int64_t stride,
                                                         int64_t d) {
  constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(T));
  const int64_t begun = reinterpret_cast<uintptr_t>(rows) / sizeof(T) % line;
  for (int64_t j = begun == 0 ? 0 : line - begun; j < d; j += line)
    for (int64_t i = 0; i < count; ++i) __builtin_prefetch(rows + i * stride + j, written);
}

// A pointer to the tokens of the head that is computed after this one; null where there is none. They are
// asked for beforehand: the processor's own prefetcher does not foresee short rows that are far apart.
template <class T>
const T* next_tokens(const HeadOfImage<T>& h, const TokenHeads<const T>& x, int64_t tokens) {
  const bool last = h.image_follows || h.head + 1 == h.sizes.heads;
  if (last && h.image + 1 == h.sizes.images) return nullptr;
  const int64_t next_head = h.image_follows ? h.head : last ? 0 : h.head + 1;
  return tokens_of(HeadOfImage<T>{h.sizes, h.terms, h.image + last, next_head}, x, tokens);
}

// Prefetches the tokens of the next head at once.
template <class T>
__attribute__((always_inline)) inline void prefetch_next_head(const HeadOfImage<T>& h,
                                                              const TokenHeads<const T>& x, int64_t tokens) {
  if (const T* next = next_tokens(h, x, tokens))
    prefetch_rows<false>(next, tokens, x.stride, h.sizes.head_dim);
}

// Prefetches where this head's results will be, so that the lines arrive while it computes; the stores of a
// few tokens, which are soon computed, would wait for them. More would not stay in the first cache so long.
template <class T>
__attribute__((always_inline)) inline void prefetch_results(const HeadOfImage<T>& h, const TokenHeads<T>& x,
                                                            int64_t tokens) {
  constexpr int64_t few = 1024;  // numbers
  if (!x.data || tokens * h.sizes.head_dim > few) return;
  prefetch_rows<true>(tokens_of(h, x, tokens), tokens, x.stride, h.sizes.head_dim);
}

// The row that the sums of scores start from: 0 for each key, -inf for the columns of padding, whose
// probability is then 0.
template <class W> Rows<const W> start_of_scores(int64_t keys, int64_t columns, Panel<W>& panel) {
  const Rows<W> start = panel.fit(1, columns);
  std::fill_n(start.data, keys, W(0));
  std::fill(start.data + keys, start.data + columns, -std::numeric_limits<W>::infinity());
  return {start.data, 0};
}

// This head's gates as a contiguous array; null without gates.
template <class T> const Wide<T>* load_gates(const HeadOfImage<T>& h, Panel<Wide<T>>& panel) {
  if (!h.terms.gates) return nullptr;
  const int64_t n = h.sizes.keys, heads = h.sizes.heads;
  Wide<T>* gate = panel.fit(1, n).data;
  for (int64_t i = 0; i < n; ++i) gate[i] = Wide<T>(h.terms.gates[(h.image * n + i) * heads + h.head]);
  return gate;
}

template <class T> void store_gates(const HeadOfImage<T>& h, const Wide<T>* sums, const Target<T>& dgates) {
  for (int64_t i = 0; i < h.sizes.keys; ++i) {
    T& target = dgates.data[(h.image * h.sizes.keys + i) * h.sizes.heads + h.head];
    target = T(dgates.add ? Wide<T>(target) + sums[i] : sums[i]);
  }
}

// What the backward pass of one head reads and writes.
template <class T> struct BackwardHead {
  TokenHeads<const T> q, k, v, dy;
  TokenHeads<T> dq, dk, dv;
  const Wide<T>* lse;      // [Nq]
  TermSums<Wide<T>> sums;  // of prior and bias; the head's pass sets that of the gates
  Target<T> dgates;
};

}  // namespace tessera
