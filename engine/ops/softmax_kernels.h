#pragma once

#include <cstdint>

#include "engine/core/dtype.h"

namespace tessera {

// x, y, dy, dx [rows, width]; y is the softmax or, with `log`, its logarithm.
template <class Dev> struct SoftmaxKernels {
  template <class T> static void forward(bool log, int64_t rows, int64_t width, const T* x, T* y);

  // dx is written or added to.
  template <class T>
  static void backward(bool log, int64_t rows, int64_t width, const T* y, const T* dy, T* dx, bool add);
};

}  // namespace tessera
