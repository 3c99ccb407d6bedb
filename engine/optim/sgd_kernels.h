#pragma once

#include <cstdint>

namespace tessera {

// One parameter in one step.
template <class T> struct SgdItem {
  int64_t n;       // elements
  T* p;            // the parameter
  const T* g;      // its gradient
  T* b;            // its momentum's buffer; null without momentum
  T rate, lambda;  // eta, weight decay
};

template <class Dev> struct SgdKernels {
  // The step of all `count` items, each read and written in a single pass; the formula stands in sgd.h.
  template <class T> static void step(const SgdItem<T>* items, int64_t count, T momentum, bool nesterov);
};

}  // namespace tessera
