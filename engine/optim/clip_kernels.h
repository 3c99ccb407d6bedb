#pragma once

#include <cstdint>

namespace tessera {

template <class T> struct ClipItem {
  int64_t n;  // elements
  T* g;       // a gradient
};

template <class Dev> struct ClipKernels {
  // The sum of the squares of all elements of `count` items.
  template <class T> static double squares(const ClipItem<T>* items, int64_t count);

  // g *= factor.
  template <class T> static void scale(const ClipItem<T>* items, int64_t count, double factor);
};

}  // namespace tessera
