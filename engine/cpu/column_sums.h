#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/core/parallel.h"
#include "engine/cpu/each.h"

namespace tessera {

// `count` sums over the rows for each column: chunk(begin, end, sums) adds those rows to sums [count, width],
// which start at zero. At most 64 chunks of at least 64 rows, added in order.
template <class W, class Chunk>
std::vector<W> column_sums(int64_t rows, int64_t width, int64_t count, Chunk chunk) {
  const int64_t grain = chunk_length(std::max<int64_t>(64, (rows + 63) / 64), width),
                chunks = (rows + grain - 1) / grain;
  const int64_t stride = count * width;
  std::vector<W> parts(static_cast<size_t>(chunks * stride), W(0));
  parallel_for(rows, grain,
               [&](int64_t begin, int64_t end) { chunk(begin, end, parts.data() + begin / grain * stride); });
  add_parts(0, stride, chunks, stride, parts.data());
  parts.resize(static_cast<size_t>(stride));
  return parts;
}

// add_rows() adds the rows of x, which lie `stride` apart, to sum [columns]; four at a time, so that the sums
// are read and written less often.
template <class T> void add_rows(int64_t rows, int64_t columns, const T* x, int64_t stride, Wide<T>* sum) {
  using W = Wide<T>;
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4)
    write_each(0, columns, sum, true, [row = x + i * stride, stride](int64_t j) {
      return (W(row[j]) + W(row[stride + j])) + (W(row[2 * stride + j]) + W(row[3 * stride + j]));
    });
  for (; i < rows; ++i)
    write_each(0, columns, sum, true, [row = x + i * stride](int64_t j) { return W(row[j]); });
}

}  // namespace tessera
