#pragma once

#include <cstdint>

namespace tessera {

template <class Dev> struct MaskKernels {
  // y [matrices, N, N] = x, `value` on the diagonals; written, or added to.
  template <class T>
  static void diagonal(int64_t matrices, int64_t tokens, const T* x, double value, T* y, bool add);
};

}  // namespace tessera
