#pragma once

#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/cpu/walk.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

template <class Dev> struct CopyKernels {
  // y = factor * x at every step of the walk through x and y. No element of y is visited twice.
  template <class T> static void copy(const Walk<2>& walk, double factor, const T* x, Target<T> y);

  // Sets n elements to zero.
  template <class T> static void zero(int64_t n, T* y);
};

// x, dx [table_rows, width]; y, dy [count, width].
struct GatherSize {
  int64_t table_rows, count, width;
};

template <class Dev> struct GatherKernels {
  // y[i] = x[index[i]]
  template <class T> static void forward(GatherSize size, const int64_t* index, const T* x, T* y);

  // dx[r] = sum of dy[i] over index[i] = r, in the order of i.
  template <class T> static void backward(GatherSize size, const int64_t* index, const T* dy, Target<T> dx);
};

template <class Dev> struct IndexKernels {
  // The first i with index[i] outside 0 .. limit-1, or -1.
  static int64_t first_outside(int64_t count, int64_t limit, const int64_t* index);
};

}  // namespace tessera
