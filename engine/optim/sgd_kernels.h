#pragma once

#include <cstdint>

#include "engine/core/device.h"

namespace tessera {

// One parameter in one step.
template <class T> struct SgdItem {
  int64_t n;       // elements
  T* p;            // the parameter
  const T* g;      // its gradient
  T* b;            // its momentum's buffer; null without momentum
  T rate, lambda;  // eta, weight decay
};

// Element i; the formula stands in sgd.h.
template <class T>
TESSERA_HD inline void sgd_update(const SgdItem<T>& item, int64_t i, T momentum, bool nesterov) {
  const T d = item.g[i] + item.lambda * item.p[i];
  if (!item.b) {
    item.p[i] -= item.rate * d;
    return;
  }
  const T b = momentum * item.b[i] + d;
  item.b[i] = b;
  item.p[i] -= item.rate * (nesterov ? d + momentum * b : b);
}

template <class Dev> struct SgdKernels {
  // The step of all `count` items, each read and written in a single pass. norm: of the gradient, where the
  // arrays are, or null; where it is not finite, nothing changes.
  template <class T>
  static void step(const SgdItem<T>* items, int64_t count, T momentum, bool nesterov, const double* norm);
};

}  // namespace tessera
