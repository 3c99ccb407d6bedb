#include <vector>

#include "engine/core/dispatch.h"
#include "engine/ops/each.h"
#include "engine/ops/reduce_kernels.h"

namespace tessera {

namespace {

// Adds up steps [begin, end) of the summed axes: into out[0, width) where the last axis stays, else into
// *out.
template <class T> void sum_chunk(const Fold& fold, int64_t begin, int64_t end, const T* x, Wide<T>* out) {
  using W = Wide<T>;
  std::fill_n(out, fold.width_kept ? fold.width : 1, W(0));
  for (int64_t step = begin; step < end; ++step) {
    const T* row = x + fold.summed.at(step, fold.summed.rank)[0];
    if (fold.width_kept) {
#pragma omp simd
      for (int64_t j = 0; j < fold.width; ++j) out[j] += W(row[j]);
    } else {
      W sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t j = 0; j < fold.width; ++j) sum += W(row[j]);
      *out += sum;
    }
  }
}

}  // namespace

// The summed axes are cut into chunks, each chunk's sum stands in `parts`, these are added in their order.
template <>
template <class T>
void ReduceKernels<Cpu>::sum(const Fold& fold, double factor, const T* x, T* y, bool add) {
  using W = Wide<T>;
  const int64_t outer = fold.kept.elements(fold.kept.rank), steps = fold.summed.elements(fold.summed.rank);
  const int64_t wide = fold.width_kept ? fold.width : 1;  // sums that stand side by side
  const int64_t grain = rows_a_chunk(fold.width), chunks = std::max<int64_t>(1, (steps + grain - 1) / grain);
  std::vector<W> parts(static_cast<size_t>(outer * chunks * wide));
  parallel_rows(outer * chunks, std::min(steps, grain) * fold.width, [&](int64_t task) {
    const int64_t o = task / chunks, begin = task % chunks * grain;
    const T* from = x + fold.kept.at(o, fold.kept.rank)[0];
    sum_chunk(fold, begin, std::min(steps, begin + grain), from, parts.data() + task * wide);
  });
  parallel_rows(outer, chunks * wide, [&](int64_t o) {
    const W* own = parts.data() + o * chunks * wide;
    write_each(0, wide, y + fold.kept.at(o, fold.kept.rank)[1], add, [=](int64_t j) {
      W sum = own[j];
      for (int64_t c = 1; c < chunks; ++c) sum += own[c * wide + j];
      return W(factor) * sum;
    });
  });
}

TESSERA_FOR_FLOATS(ReduceKernels<Cpu>::sum)

}  // namespace tessera
