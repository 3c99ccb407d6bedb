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

  // norm [2], where the arrays are: the root of the sum of squares, and the same or NaN where it is not below
  // `largest`. Then g *= max_norm / norm, where that is finite and larger than a max_norm above 0.
  template <class T>
  static void clip(const ClipItem<T>* items, int64_t count, double max_norm, double largest, double* norm);

  // g *= factor.
  template <class T> static void scale(const ClipItem<T>* items, int64_t count, double factor);
};

}  // namespace tessera
