#pragma once

#include <cstdint>

namespace tessera {

template <class T> struct EmaItem {
  int64_t n;   // elements
  T* e;        // the average
  const T* p;  // the weights
};

template <class Dev> struct EmaKernels {
  // e += (1 - d) (p - e), given 1 - d: for a d near 1 rounded less than d e + (1 - d) p. Nothing where
  // `norm`, which lies where the arrays are, is not finite (null: it is).
  template <class T> static void update(const EmaItem<T>* items, int64_t count, T rest, const double* norm);
};

}  // namespace tessera
