#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/ops/rotary_kernels.h"

namespace tessera {

template <>
template <class T>
void RotaryKernels<Cpu>::turn(const RotarySize& size, const Wide<T>* turns, bool back, const T* x,
                              Target<T> y) {
  const int64_t rows = size.rows, width = size.width, tokens = size.tokens, pairs = size.pairs;
  using W = Wide<T>;
  const W sign = back ? W(-1) : W(1);
  parallel_for(rows, chunk_length(64, width), [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const W* of_token = turns + r % tokens * pairs * 2;
      for (int64_t head = 0; head < width; head += 2 * pairs) {
        const T* from = x + r * width + head;
        T* to = y.data + r * width + head;
        for (int64_t k = 0; k < pairs; ++k) {
          const W cos = of_token[2 * k], sin = sign * of_token[2 * k + 1];
          const W even = W(from[2 * k]), odd = W(from[2 * k + 1]);
          const W first = even * cos - odd * sin, second = odd * cos + even * sin;
          to[2 * k] = T(y.add ? W(to[2 * k]) + first : first);
          to[2 * k + 1] = T(y.add ? W(to[2 * k + 1]) + second : second);
        }
      }
    }
  });
}

TESSERA_FOR_FLOATS(RotaryKernels<Cpu>::turn)

}  // namespace tessera
