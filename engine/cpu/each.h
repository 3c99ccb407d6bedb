#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/core/dtype.h"
#include "engine/core/parallel.h"
#include "engine/cpu/walk.h"

namespace tessera {

// Loops that the CPU kernels share. A chunk of parallel work has about this many elements.
constexpr int64_t chunk_elements = 1 << 14;

// The number of rows of `width` elements in a chunk.
inline int64_t rows_a_chunk(int64_t width) {
  return std::max<int64_t>(1, chunk_length(chunk_elements) / std::max<int64_t>(1, width));
}

// out = value. A bf16 is stored by its bits, because the compiler does not vectorise the copy of a class.
template <class T> inline void store(T& out, Wide<T> value) {
  if constexpr (std::is_same_v<T, bf16>)
    out.bits = bf16(value).bits;
  else
    out = value;
}

// Writes n zeros. The compiler turns a fill of a class, as bf16 is, into a loop of two bytes at a time.
template <class T> void clear(T* to, int64_t n) {
  std::memset(static_cast<void*>(to), 0, static_cast<size_t>(n) * sizeof(T));
}

// out[i] = f(i) or, with `add`, out[i] += f(i) for i in [begin, end), in one vector loop. f returns a Wide<T>
// and may read out[i], but no other element of `out`. All of f becomes part of the loop, however long it is:
// a call of it would make the loop one of single numbers.
template <class T, class F>
[[gnu::flatten]] void write_each(int64_t begin, int64_t end, T* out, bool add, F&& f) {
  if (add) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) store(out[i], Wide<T>(out[i]) + f(i));
  } else {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) store(out[i], f(i));
  }
}

// Part 0 becomes the sum of all parts, added in their order, for the elements [begin, end). Part p begins at
// sums + p * stride. The loop over elements is the inner one, so that it works in vectors.
template <class W> void add_parts(int64_t begin, int64_t end, int64_t parts, int64_t stride, W* sums) {
  for (int64_t p = 1; p < parts; ++p) {
    const W* part = sums + p * stride;
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) sums[i] += part[i];
  }
}

// write_each() over [0, n) on all threads.
template <class T, class F> void parallel_write(int64_t n, T* out, bool add, F&& f) {
  parallel_for(n, chunk_length(chunk_elements),
               [=](int64_t begin, int64_t end) { write_each(begin, end, out, add, f); });
}

// Calls row(i) for all rows, of `width` elements each, on all threads.
template <class F> void parallel_rows(int64_t rows, int64_t width, F&& row) {
  parallel_for(rows, rows_a_chunk(width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) row(i);
  });
}

// Walks on all threads: calls run(offsets, count) for runs of `count` entries of the innermost axis that
// begin at these offsets of the arrays.
template <int Arrays, class F> void parallel_walk(const Walk<Arrays>& walk, F&& run) {
  const int last = walk.rank - 1;
  const int64_t width = walk.rank == 0 ? 1 : walk.size[static_cast<size_t>(last)];
  const int64_t rows = walk.elements(std::max(last, 0));
  if (rows != 1) {
    parallel_for(rows, rows_a_chunk(width), [&](int64_t begin, int64_t end) {
      Cursor<Arrays> cursor(walk, last, begin);
      for (int64_t i = begin; i < end; ++i, cursor.advance()) run(cursor.offset(), width);
    });
    return;
  }
  parallel_for(width, chunk_length(chunk_elements),
               [&](int64_t begin, int64_t end) { run(walk.at(begin, walk.rank), end - begin); });
}

}  // namespace tessera
