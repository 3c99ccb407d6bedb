#pragma once

// The shared memory of a block of attention's backward pass by rows of queries, and the work of its warps on
// their rows.

#include "engine/ops/attention/backward_cuda.h"

namespace tessera {

// The shared memory of a block of queries. With `whole` it also holds P and ds; see backward_queries_cuda.cu.
template <class T, int depth> struct QueryRoom {
  using W = Wide<T>;
  using Tiles = Cut<T, depth>;
  static constexpr int score_stride = Tiles::columns + 16 / static_cast<int>(sizeof(T));
  T *q, *dy;        // [rows, depth]
  T *k, *v;         // a tile [columns, depth]
  T *p, *ds;        // [rows, columns]
  W* gate;          // [keys]
  W* gate_rows;     // [rows]: a gate's shares summed over its row
  W* gate_columns;  // [warps, columns]: a gate's shares summed over its column, for the rows of each warp
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

// The rows of a warp: first the sums of their softmax, then ds.
template <class T, int depth, ChainTerms terms> struct QueryRows {
  using W = Wide<T>;
  static constexpr int blocks = Cut<T, depth>::blocks;
  static constexpr bool plain = terms == ChainTerms::plain;
  const AttentionOperands<T>& in;
  const ScoreChain<T, terms>& chain;
  int first_query;
  W shift[2];                             // exp_ready(lse) of the lane's rows
  W share[2] = {0, 0}, mean[2] = {0, 0};  // sums over P and P dP; after close(), see RowSums
  W dscale = 0, dgate[2] = {0, 0};

  // p = exp(s - lse) for a block of raw = q . k.
  __device__ void probabilities(const W (&raw)[4], const At (&at)[4], W (&p)[4]) const {
#pragma unroll
    for (int e = 0; e < 4; ++e) p[e] = raw[e];
    chain.forward(p, at);
#pragma unroll
    for (int e = 0; e < 4; ++e) p[e] = exp_less<T>(exp_ready<T>(1), p[e], shift[e / 2]);
  }

  // Adds a tile to the sums. With plain terms raw becomes exp(s - lse).
  __device__ void add_tile(int first_key, int used, ScorePair<W, blocks>& pair) {
    if constexpr (plain) make_probabilities<blocks>(in, chain, first_query, first_key, used, shift, pair.raw);
    each_block_pair<W, blocks>(used, pair.raw, pair.dp, [&](int column, const W(&raw)[4], const W(&dp)[4]) {
      const BlockPlaces<T> places(in, first_query, first_key + column);
      W own[4];
      if constexpr (!plain) probabilities(raw, places.at, own);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const W p = plain ? raw[e] : places.is_key[e] ? own[e] : W(0);
        share[e / 2] += p;
        mean[e / 2] += p * dp[e];
      }
    });
  }

  __device__ void close() { close_row_sums(first_query, in.queries, share, mean); }

  // Stores the sums for the kernel by rows of keys.
  __device__ void store_sums(const RowSums<W>& sums, int64_t first_of_head) const {
    const int lane = own_lane();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = first_query + lane / 4 + 8 * half;
      if (i >= in.queries || lane % 4 != 0) continue;
      sums.share[first_of_head + i] = share[half];
      sums.mean[first_of_head + i] = mean[half];
    }
  }

  // With plain terms, where raw is exp(s - lse): raw becomes ds, and dp becomes P. Beyond the matrix they are
  // 0, since P is 0 beyond the keys and dP beyond the queries.
  __device__ void plain_ds(int used, ScorePair<W, blocks>& pair) const {
    each_pair<W, blocks>(used, pair.raw, pair.dp, [&](int, int, int half, W& raw, W& dp) {
      const W p = raw * share[half];
      raw = p * (dp - mean[half]);
      dp = p;
    });
  }

  // Turns raw = q . k into ds and dp into the gate's share, and calls give(column, places, P, the shares of
  // the terms' tensors) for each block. Beyond the matrix they are 0.
  template <class Give>
  __device__ void any_ds(int first_key, int used, ScorePair<W, blocks>& pair, const Give& give) {
    each_block_pair<W, blocks>(used, pair.raw, pair.dp, [&](int column, W(&raw)[4], W(&dp)[4]) {
      const BlockPlaces<T> places(in, first_query, first_key + column);
      W p[4];
      ChainShares<W> to[4];
      probabilities(raw, places.at, p);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        p[e] = places.inside[e] ? p[e] * share[e / 2] : W(0);
        to[e] = {p[e] * (dp[e] - mean[e / 2]), 0, 0, 0, 0};
      }
      chain.backward(raw, places.at, to);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        dscale += to[e].scale;
        dgate[e / 2] += to[e].gate;
        raw[e] = to[e].ds;
        dp[e] = to[e].gate;
      }
      give(column, places, p, to);
    });
  }

  // Stores the sums of the gates' shares over their rows and, where the block holds all keys, over their
  // columns; dp holds the shares.
  template <bool whole>
  __device__ void store_gates(const ScorePair<W, blocks>& pair, int used, const QueryRoom<T, depth>& room,
                              const RowSums<W>& sums, int64_t first_of_head, int own) const {
    const int lane = own_lane();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const W as_query = row_all<Plus>(dgate[half]);
      const int row = lane / 4 + 8 * half, i = first_query + row;
      if (lane % 4 != 0) continue;
      if (whole) room.gate_rows[own + row] = as_query;
      if (!whole && sums.gate && i < in.queries) sums.gate[first_of_head + i] = as_query;
    }
    if constexpr (whole)
      column_totals<W, blocks>(used, pair.dp, room.gate_columns + own / warp_rows * Cut<T, depth>::columns);
  }
};

}  // namespace tessera
