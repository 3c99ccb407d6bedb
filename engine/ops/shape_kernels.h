#pragma once

#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/cpu/walk.h"

namespace tessera {

template <class Dev> struct CopyKernels {
  // y = factor * x at every step of the walk through x and y; written or added to. No place of y comes twice.
  template <class T> static void copy(const Walk<2>& walk, double factor, const T* x, T* y, bool add);

  // Zeros n elements.
  template <class T> static void zero(int64_t n, T* y);
};

template <class Dev> struct GatherKernels {
  // y[i] = x[index[i]], rows of `width` elements; y [count, width].
  template <class T>
  static void forward(int64_t count, int64_t width, const int64_t* index, const T* x, T* y);

  // dx [rows, width], written or added to: dx[r] = sum of dy[i] over index[i] = r, in the order of i.
  template <class T>
  static void backward(int64_t rows, int64_t count, int64_t width, const int64_t* index, const T* dy, T* dx,
                       bool add);
};

template <class Dev> struct IndexKernels {
  // The first i with index[i] outside 0 .. limit-1, or -1.
  static int64_t first_outside(int64_t count, int64_t limit, const int64_t* index);
};

}  // namespace tessera
