#pragma once

#include <cstdint>

#include "engine/ops/kernel_arguments.h"

namespace tessera {

// x [outer, from, inner], y [outer, count, inner].
struct TakeSize {
  int64_t outer, from, count, inner;
};

// index [count], each in 0 .. from-1.
template <class Dev> struct TakeKernels {
  template <class T> static void forward(const TakeSize& size, const int64_t* index, const T* x, T* y);
  template <class T>
  static void backward(const TakeSize& size, const int64_t* index, const T* dy, Target<T> dx);
};

}  // namespace tessera
