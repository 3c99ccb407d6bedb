#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "engine/core/dispatch.h"
#include "engine/cpu/each.h"
#include "engine/cpu/row_sums.h"
#include "engine/ops/reduce_kernels.h"

namespace tessera {

namespace {

// How the sums of a fold are cut: long rows into pieces, and the steps of a sum into chunks. Where the last
// axis is kept, every piece has sums of its own, and its steps are the rows; otherwise the steps of the one
// sum are the pieces of all rows.
struct SumChunks {
  int64_t piece, pieces;  // of a row
  int64_t steps, grain;   // grain steps make a chunk
  int64_t chunks;

  explicit SumChunks(const Fold& fold)
      : piece(std::min(fold.width, chunk_length(fold.width_kept ? kept_piece : chunk_elements))),
        pieces(piece == 0 ? 1 : (fold.width + piece - 1) / piece),
        steps(fold.summed.elements(fold.summed.rank) * (fold.width_kept ? 1 : pieces)),
        grain(rows_a_chunk(piece)),
        chunks(std::max<int64_t>(1, (steps + grain - 1) / grain)) {}

  // The columns [first, last) of piece p.
  std::array<int64_t, 2> columns(const Fold& fold, int64_t p) const {
    return {p * piece, std::min(fold.width, (p + 1) * piece)};
  }

 private:
  static constexpr int64_t kept_piece = 1024;
};

// out [columns of piece p] = the sums over one chunk of rows.
template <class T>
void sum_rows(const Fold& fold, const SumChunks& cut, int64_t p, int64_t chunk, const T* x, Wide<T>* out) {
  using W = Wide<T>;
  const auto [first, last] = cut.columns(fold, p);
  const int64_t begin = chunk * cut.grain, end = std::min(cut.steps, begin + cut.grain), count = last - first;
  std::fill_n(out, count, W(0));
  for (int64_t step = begin; step < end; ++step) {
    const T* row = x + fold.summed.at(step, fold.summed.rank)[0] + first;
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) out[j] += W(row[j]);
  }
}

// The sum over one chunk of pieces of rows.
template <class T> Wide<T> sum_of_pieces(const Fold& fold, const SumChunks& cut, int64_t chunk, const T* x) {
  const int64_t begin = chunk * cut.grain, end = std::min(cut.steps, begin + cut.grain);
  Wide<T> sum = 0;
  for (int64_t step = begin; step < end; ++step) {
    const auto [first, last] = cut.columns(fold, step % cut.pieces);
    const T* row = x + fold.summed.at(step / cut.pieces, fold.summed.rank)[0];
    sum += sum_of_row(last - first, row + first);
  }
  return sum;
}

}  // namespace

// `parts` [outer, chunks, sums side by side] holds the sums of each chunk; they are added in order.
template <>
template <class T>
void ReduceKernels<Cpu>::sum(const Fold& fold, double factor, const T* x, Target<T> y) {
  using W = Wide<T>;
  const SumChunks cut(fold);
  const int64_t outer = fold.kept.elements(fold.kept.rank), chunks = cut.chunks;
  const int64_t wide = fold.width_kept ? fold.width : 1, pieces = fold.width_kept ? cut.pieces : 1;
  const auto memory = std::make_unique_for_overwrite<W[]>(static_cast<size_t>(outer * chunks * wide));
  W* const parts = memory.get();
  parallel_rows(outer * chunks * pieces, std::min(cut.steps, cut.grain) * cut.piece, [&](int64_t task) {
    const int64_t p = task % pieces, row = task / pieces, chunk = row % chunks;
    const T* from = x + fold.kept.at(row / chunks, fold.kept.rank)[0];
    if (fold.width_kept)
      sum_rows(fold, cut, p, chunk, from, parts + row * wide + p * cut.piece);
    else
      parts[row] = sum_of_pieces(fold, cut, chunk, from);
  });
  parallel_rows(outer * pieces, chunks * std::min(wide, cut.piece), [&](int64_t task) {
    const int64_t o = task / pieces;
    W* own = parts + o * chunks * wide;
    const auto [first, last] =
        fold.width_kept ? cut.columns(fold, task % pieces) : std::array<int64_t, 2>{0, 1};
    add_parts(first, last, chunks, wide, own);
    write_each(first, last, y.data + fold.kept.at(o, fold.kept.rank)[1], y.add,
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
