#pragma once

#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

// x, y, dy, dx [rows, width]; y is the softmax of each row or, with `log`, its logarithm.
template <class Dev> struct SoftmaxKernels {
  template <class T> static void forward(bool log, RowsSize size, const T* x, T* y);

  template <class T> static void backward(bool log, RowsSize size, const T* y, const T* dy, Target<T> dx);
};

}  // namespace tessera
