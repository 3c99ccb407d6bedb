#pragma once

#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

// The taps of one axis in flat arrays: output i has the taps first[i] .. first[i + 1] - 1.
struct FlatTaps {
  int64_t inputs, outputs;
  const int64_t* first;
  const int64_t* from;
  const double* weight;
};

template <class Dev> struct ResampleKernels {
  // x [images, vertical.inputs, horizontal.inputs, channels], y the same with the outputs.
  template <class T>
  static void forward(int64_t images, int64_t channels, const FlatTaps& vertical, const FlatTaps& horizontal,
                      const T* x, T* y);
  template <class T>
  static void backward(int64_t images, int64_t channels, const FlatTaps& vertical, const FlatTaps& horizontal,
                       const T* dy, Target<T> dx);
};

}  // namespace tessera
