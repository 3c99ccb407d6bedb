#include "engine/core/dispatch.h"
#include "engine/cpu/each.h"
#include "engine/ops/rotary_kernels.h"

namespace tessera {

namespace {

// The pairs of one head, in one vector loop.
template <bool add, class T>
void turn_head(int64_t pairs, const Wide<T>* turns, Wide<T> sign, const T* x, T* y) {
  using W = Wide<T>;
#pragma omp simd
  for (int64_t k = 0; k < pairs; ++k) {
    const W cos = turns[2 * k], sin = sign * turns[2 * k + 1];
    const W even = W(x[2 * k]), odd = W(x[2 * k + 1]);
    const W first = even * cos - odd * sin, second = odd * cos + even * sin;
    store(y[2 * k], add ? W(y[2 * k]) + first : first);
    store(y[2 * k + 1], add ? W(y[2 * k + 1]) + second : second);
  }
}

}  // namespace

template <>
template <class T>
void RotaryKernels<Cpu>::turn(const RotarySize& size, const Wide<T>* turns, bool back, const T* x,
                              Target<T> y) {
  const int64_t width = size.width, tokens = size.tokens, pairs = size.pairs;
  const Wide<T> sign(back ? -1.0f : 1.0f);
  const auto head = y.add ? turn_head<true, T> : turn_head<false, T>;
  parallel_rows(size.rows, width, [=](int64_t r) {
    for (int64_t at = r * width; at < (r + 1) * width; at += 2 * pairs)
      head(pairs, turns + r % tokens * pairs * 2, sign, x + at, y.data + at);
  });
}

TESSERA_FOR_FLOATS(RotaryKernels<Cpu>::turn)

}  // namespace tessera
