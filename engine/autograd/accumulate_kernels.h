#pragma once

#include <cstdint>

namespace tessera {

template <class Dev> struct AccumulateKernels {
  // a[i] += b[i] for n elements.
  template <class T> static void add(T* a, const T* b, int64_t n);
};

}  // namespace tessera
