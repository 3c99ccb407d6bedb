#include "engine/core/dispatch.h"
#include "engine/cuda/index.h"
#include "engine/cuda/launch.h"
#include "engine/ops/rotary_kernels.h"

namespace tessera {

template <>
template <class T>
void RotaryKernels<Cuda>::turn(const RotarySize& size, const Wide<T>* turns, bool back, const T* x,
                               Target<T> y) {
  const int64_t rows = size.rows, width = size.width, tokens = size.tokens, pairs = size.pairs;
  using W = Wide<T>;
  const W sign = back ? W(-1) : W(1);
  map(
      rows * width, y.data, y.add,
      [=] __device__(int64_t at, W own) {
        const bool odd = at & 1;  // rows begin at even offsets
        const W other = W(x[odd ? at - 1 : at + 1]);
        int64_t row = at, column = split_off(row, width);
        const int64_t pair = split_off(column, 2 * pairs) / 2, token = split_off(row, tokens);
        const W *turn = turns + (token * pairs + pair) * 2, cos = turn[0], sin = sign * turn[1];
        return odd ? own * cos + other * sin : own * cos - other * sin;
      },
      x);
}

TESSERA_FOR_FLOATS(RotaryKernels<Cuda>::turn)

}  // namespace tessera
