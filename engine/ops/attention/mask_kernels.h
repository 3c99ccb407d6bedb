#pragma once

#include <cstdint>

#include "engine/ops/kernel_arguments.h"

namespace tessera {

template <class Dev> struct MaskKernels {
  // y [matrices, N, N] = x, with `value` on the diagonals.
  template <class T>
  static void diagonal(int64_t matrices, int64_t tokens, const T* x, double value, Target<T> y);
};

}  // namespace tessera
