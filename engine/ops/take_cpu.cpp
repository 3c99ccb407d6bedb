#include <algorithm>
#include <span>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/core/scratch.h"
#include "engine/cpu/each.h"
#include "engine/ops/take_kernels.h"

namespace tessera {

namespace {

constexpr int of_sum = 40;  // key of a thread's scratch memory

// Entry r of x is taken to those places of y that stand at first[r] up to first[r + 1] of `places`, in order.
struct Takers {
  std::vector<int64_t> first, places;

  Takers(const TakeSize& size, const int64_t* index)
      : first(static_cast<size_t>(size.from) + 1), places(static_cast<size_t>(size.count)) {
    for (int64_t i = 0; i < size.count; ++i) ++first[static_cast<size_t>(index[i]) + 1];
    for (size_t r = 1; r < first.size(); ++r) first[r] += first[r - 1];
    std::vector<int64_t> next = first;
    for (int64_t i = 0; i < size.count; ++i)
      places[static_cast<size_t>(next[static_cast<size_t>(index[i])]++)] = i;
  }

  std::span<const int64_t> of(int64_t r) const {
    const auto at = static_cast<size_t>(r);
    return std::span(places).subspan(static_cast<size_t>(first[at]),
                                     static_cast<size_t>(first[at + 1] - first[at]));
  }
};

// to [inner] = the sum of the rows of dy at these places, or += with `add`; bf16 is rounded once.
template <class T>
void add_rows(std::span<const int64_t> places, int64_t inner, const T* dy, bool add, T* to) {
  if (places.size() == 1 && !add) {
    std::copy_n(dy + places[0] * inner, inner, to);
    return;
  }
  Wide<T>* const sum = thread_scratch<Wide<T>, of_sum>(inner);
  std::fill_n(sum, inner, Wide<T>(0));
  for (const int64_t place : places)
    write_each(0, inner, sum, true, [d = dy + place * inner](int64_t j) { return Wide<T>(d[j]); });
  write_each(0, inner, to, add, [sum](int64_t j) { return sum[j]; });
}

}  // namespace

template <>
template <class T>
void TakeKernels<Cpu>::forward(const TakeSize& size, const int64_t* index, const T* x, T* y) {
  const int64_t outer = size.outer, from = size.from, count = size.count, inner = size.inner;
  parallel_for(outer * count, rows_a_chunk(inner), [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      std::copy_n(x + (r / count * from + index[r % count]) * inner, inner, y + r * inner);
  });
}

template <>
template <class T>
void TakeKernels<Cpu>::backward(const TakeSize& size, const int64_t* index, const T* dy, Target<T> dx) {
  const int64_t from = size.from, inner = size.inner;
  const Takers takers(size, index);
  parallel_for(size.outer * from, rows_a_chunk(inner), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      add_rows(takers.of(r % from), inner, dy + r / from * size.count * inner, dx.add, dx.data + r * inner);
  });
}

TESSERA_FOR_FLOATS(TakeKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(TakeKernels<Cpu>::backward)

}  // namespace tessera
