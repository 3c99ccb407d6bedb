#include <algorithm>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/cpu/each.h"
#include "engine/ops/shape_kernels.h"

namespace tessera {

namespace {

constexpr int64_t most_tile = 32;  // the rows of a tile, of x and of y, stay in the first cache
// Loops for vectors have at least so many turns: shorter ones, as over colours, mostly begin and end.
constexpr int64_t least_width = 8;

// n numbers that lie apart: y = factor x or, with `add`, y += factor x.
template <class T>
void copy_strided(int64_t n, Wide<T> factor, const T* x, int64_t step_x, T* y, int64_t step_y, bool add) {
  using W = Wide<T>;
  for (int64_t i = 0; i < n; ++i)
    store(y[i * step_y], factor * W(x[i * step_x]) + (add ? W(y[i * step_y]) : W(0)));
}

// Copies where y is contiguous along the last axis and x along axis `near`: in tiles over both axes, so that
// neither array is walked in strides that miss the cache.
template <class T>
void copy_transposed(const Walk<2>& walk, int near, Wide<T> factor, const T* x, const Target<T>& y) {
  const size_t n = static_cast<size_t>(near), last = static_cast<size_t>(walk.rank) - 1;
  Walk<2> outer;
  for (size_t i = 0; i < last; ++i)
    if (i != n) outer.append(walk.size[i], {walk.stride[0][i], walk.stride[1][i]});
  const int64_t height = walk.size[n], width = walk.size[last];
  const int64_t step_x = walk.stride[0][last], step_y = walk.stride[1][n];
  const int64_t tile = chunk_length(most_tile);
  const int64_t high = (height + tile - 1) / tile, wide = (width + tile - 1) / tile;
  parallel_rows(outer.elements(outer.rank) * high * wide, tile * tile, [&](int64_t task) {
    const auto at = outer.at(task / (high * wide), outer.rank);
    const int64_t top = task / wide % high * tile, left = task % wide * tile;
    const int64_t bottom = std::min(height, top + tile), right = std::min(width, left + tile);
    const T* const from = x + at[0];
    T* const to = y.data + at[1];
    if (width < least_width)
      for (int64_t j = left; j < right; ++j)
        copy_strided(bottom - top, factor, from + top + j * step_x, 1, to + top * step_y + j, step_y, y.add);
    else
      for (int64_t i = top; i < bottom; ++i)
        write_each(left, right, to + i * step_y, y.add,
                   [=, row = from + i](int64_t j) { return factor * Wide<T>(row[j * step_x]); });
  });
}

// The axis along which x is contiguous while y is not; -1 if there is none.
int transposed_axis(const Walk<2>& walk) {
  const int last = walk.rank - 1;
  if (last < 1 || walk.stride[0][static_cast<size_t>(last)] <= 1 ||
      walk.stride[1][static_cast<size_t>(last)] != 1)
    return -1;
  for (int i = 0; i < last; ++i)
    if (walk.stride[0][static_cast<size_t>(i)] == 1) return i;
  return -1;
}

}  // namespace

template <>
template <class T>
void CopyKernels<Cpu>::copy(const Walk<2>& walk, double factor, const T* x, Target<T> y) {
  using W = Wide<T>;
  if (const int near = transposed_axis(walk); near >= 0) return copy_transposed(walk, near, W(factor), x, y);
  const size_t last = static_cast<size_t>(std::max(walk.rank - 1, 0));
  const int64_t step_x = walk.stride[0][last], step_y = walk.stride[1][last];
  parallel_walk(walk, [=, c = W(factor)](const std::array<int64_t, 2>& at, int64_t count) {
    const T* from = x + at[0];
    T* to = y.data + at[1];
    if (step_x == 1 && step_y == 1)
      write_each(0, count, to, y.add, [=](int64_t i) { return c * W(from[i]); });
    else if (step_x == 0 && step_y == 1)
      write_each(0, count, to, y.add, [=, v = c * W(*from)](int64_t) { return v; });
    else
      copy_strided(count, c, from, step_x, to, step_y, y.add);
  });
}

template <> template <class T> void CopyKernels<Cpu>::zero(int64_t n, T* y) {
  parallel_for(n, chunk_length(chunk_elements),
               [=](int64_t begin, int64_t end) { clear(y + begin, end - begin); });
}

template <>
template <class T>
void GatherKernels<Cpu>::forward(GatherSize size, const int64_t* index, const T* x, T* y) {
  const int64_t count = size.count, width = size.width;
  parallel_rows(count, width, [=](int64_t i) { std::copy_n(x + index[i] * width, width, y + i * width); });
}

template <>
template <class T>
void GatherKernels<Cpu>::backward(GatherSize size, const int64_t* index, const T* dy, Target<T> dx) {
  const int64_t rows = size.table_rows, count = size.count, width = size.width;
  // The positions of the index sorted by row: those of row r lie at [start[r], start[r + 1]), in order.
  std::vector<int64_t> start(static_cast<size_t>(rows) + 1, 0), sorted(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) ++start[static_cast<size_t>(index[i]) + 1];
  for (size_t r = 0; r < static_cast<size_t>(rows); ++r) start[r + 1] += start[r];
  std::vector<int64_t> next(start.begin(), start.end() - 1);
  for (int64_t i = 0; i < count; ++i) sorted[static_cast<size_t>(next[static_cast<size_t>(index[i])]++)] = i;
  parallel_rows(rows, width * (1 + count / std::max<int64_t>(1, rows)), [&](int64_t r) {
    const int64_t begin = start[static_cast<size_t>(r)], end = start[static_cast<size_t>(r) + 1];
    write_each(0, width, dx.data + r * width, dx.add, [&](int64_t j) {
      Wide<T> sum = 0;
      for (int64_t k = begin; k < end; ++k) sum += Wide<T>(dy[sorted[static_cast<size_t>(k)] * width + j]);
      return sum;
    });
  });
}

template <> int64_t IndexKernels<Cpu>::first_outside(int64_t count, int64_t limit, const int64_t* index) {
  const int64_t* outside = std::find_if(index, index + count, [=](int64_t i) { return i < 0 || i >= limit; });
  return outside == index + count ? -1 : outside - index;
}

TESSERA_FOR_FLOATS(CopyKernels<Cpu>::copy)
TESSERA_FOR_FLOATS(CopyKernels<Cpu>::zero)
TESSERA_FOR_FLOATS(GatherKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(GatherKernels<Cpu>::backward)

}  // namespace tessera
