#pragma once

#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

// x, y [rows, width], row r being token r % tokens, width a multiple of 2 pairs; turns [tokens, pairs, 2],
// the cosine and sine of each angle.
struct RotarySize {
  int64_t rows, width, tokens, pairs;
};

template <class Dev> struct RotaryKernels {
  // y = x rotated by the angles; with `back`, by their negatives.
  template <class T>
  static void turn(const RotarySize& size, const Wide<T>* turns, bool back, const T* x, Target<T> y);
};

}  // namespace tessera
