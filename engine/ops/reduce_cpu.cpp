#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/cpu/each.h"
#include "engine/cpu/row_sums.h"
#include "engine/ops/reduce_kernels.h"

namespace tessera {

namespace {

// How the summed axes of a fold are cut: a long row into pieces, and the steps over rows and pieces into
// chunks.
struct SumChunks {
  int64_t piece, pieces;  // of a row
  int64_t steps, grain;   // grain steps make a chunk
  int64_t chunks;

  explicit SumChunks(const Fold& fold)
      : piece(fold.width_kept ? fold.width : std::min(fold.width, chunk_length(chunk_elements))),
        pieces(piece == 0 ? 1 : (fold.width + piece - 1) / piece),
        steps(fold.summed.elements(fold.summed.rank) * pieces),
        grain(rows_a_chunk(piece)),
        chunks(std::max<int64_t>(1, (steps + grain - 1) / grain)) {}
};

// Adds up one chunk: into out[0, width) where the last axis is kept, otherwise into *out.
template <class T>
void sum_chunk(const Fold& fold, const SumChunks& cut, int64_t chunk, const T* x, Wide<T>* out) {
  using W = Wide<T>;
  std::fill_n(out, fold.width_kept ? fold.width : 1, W(0));
  const int64_t begin = chunk * cut.grain, end = std::min(cut.steps, begin + cut.grain);
  for (int64_t step = begin; step < end; ++step) {
    const int64_t first = step % cut.pieces * cut.piece, last = std::min(fold.width, first + cut.piece);
    const T* row = x + fold.summed.at(step / cut.pieces, fold.summed.rank)[0];
    if (fold.width_kept) {
#pragma omp simd
      for (int64_t j = 0; j < last; ++j) out[j] += W(row[j]);
    } else {
      *out += sum_of_row(last - first, row + first);
    }
  }
}

}  // namespace

// `parts` holds the sum of each chunk; they are added in order.
template <>
template <class T>
void ReduceKernels<Cpu>::sum(const Fold& fold, double factor, const T* x, Target<T> y) {
  using W = Wide<T>;
  const SumChunks cut(fold);
  const int64_t outer = fold.kept.elements(fold.kept.rank), chunks = cut.chunks;
  const int64_t wide = fold.width_kept ? fold.width : 1;  // sums that lie side by side
  std::vector<W> parts(static_cast<size_t>(outer * chunks * wide));
  parallel_rows(outer * chunks, std::min(cut.steps, cut.grain) * cut.piece, [&](int64_t task) {
    const T* from = x + fold.kept.at(task / chunks, fold.kept.rank)[0];
    sum_chunk(fold, cut, task % chunks, from, parts.data() + task * wide);
  });
  parallel_rows(outer, chunks * wide, [&](int64_t o) {
    W* own = parts.data() + o * chunks * wide;
    add_parts(0, wide, chunks, wide, own);
    write_each(0, wide, y.data + fold.kept.at(o, fold.kept.rank)[1], y.add,
               [=](int64_t j) { return W(factor) * own[j]; });
  });
}

template <> template <class T> void MaxKernels<Cpu>::forward(AxisSize size, const T* x, T* y, int64_t* at) {
  const int64_t outer = size.outer, count = size.count, inner = size.inner;
  parallel_rows(outer, count * inner, [=](int64_t o) {
    const T* from = x + o * count * inner;
    T* best = y + o * inner;
    int64_t* where = at + o * inner;
    std::copy_n(from, inner, best);
    std::fill_n(where, inner, int64_t{0});
    for (int64_t i = 1; i < count; ++i)
      for (int64_t j = 0; j < inner; ++j) {
        const Wide<T> value(from[i * inner + j]), so_far(best[j]);
        if (value <= so_far || std::isnan(so_far)) continue;  // a NaN is the maximum, and remains it
        best[j] = from[i * inner + j];
        where[j] = i;
      }
  });
}

template <>
template <class T>
void MaxKernels<Cpu>::backward(AxisSize size, const T* dy, const int64_t* at, Target<T> dx) {
  const int64_t outer = size.outer, count = size.count, inner = size.inner;
  using W = Wide<T>;
  parallel_rows(outer * count, inner, [=](int64_t row) {
    const int64_t i = row % count, first = row / count * inner;
    write_each(0, inner, dx.data + row * inner, dx.add,
               [=](int64_t j) { return at[first + j] == i ? W(dy[first + j]) : W(0); });
  });
}

TESSERA_FOR_FLOATS(ReduceKernels<Cpu>::sum)
TESSERA_FOR_FLOATS(MaxKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(MaxKernels<Cpu>::backward)

}  // namespace tessera
