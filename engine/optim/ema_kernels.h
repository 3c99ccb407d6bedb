#pragma once

#include <cstdint>

namespace tessera {

template <class T> struct EmaItem {
  int64_t n;   // elements
  T* e;        // the average
  const T* p;  // the weights
};

template <class Dev> struct EmaKernels {
  // e += rest (p - e) with rest = 1 - d, which rounds less than d e + (1 - d) p for d near 1. Nothing happens
  // if *norm, in the arrays' memory, is not finite; a null norm counts as finite.
  template <class T> static void update(const EmaItem<T>* items, int64_t count, T rest, const double* norm);
};

}  // namespace tessera
