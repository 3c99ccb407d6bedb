#pragma once

#include <cstdint>

namespace tessera {

// x [outer, from, inner], y [outer, count, inner], index [count] in 0 .. from-1.
template <class Dev> struct TakeKernels {
  template <class T>
  static void forward(int64_t outer, int64_t from, int64_t count, int64_t inner, const int64_t* index,
                      const T* x, T* y);
  template <class T>
  static void backward(int64_t outer, int64_t from, int64_t count, int64_t inner, const int64_t* index,
                       const T* dy, bool add_dx, T* dx);
};

}  // namespace tessera
