#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/core/dtype.h"

namespace tessera {

// The offsets (dy, dx) in pixels of the copies, the image's own (0, 0) first.
struct Shifts {
  struct Offset {
    int64_t dy = 0, dx = 0;
  };
  int count = 1;
  std::array<Offset, 9> offset{};
};

// The sizes of x [images, channels, height, width].
struct ImageSize {
  int64_t images, channels, height, width;
};

template <class Dev> struct ShiftKernels {
  // y [images, shifts, channels, height, width]: y_d(i, j) = x(i + dy_d, j + dx_d), 0 outside.
  template <class T> static void forward(const ImageSize& size, const Shifts& shifts, const T* x, T* y);

  // dx(i, j) = sum over d of dy_d(i - dy_d, j - dx_d), written or added to.
  template <class T>
  static void backward(const ImageSize& size, const Shifts& shifts, const T* dy, T* dx, bool add);
};

}  // namespace tessera
