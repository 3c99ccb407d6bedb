#pragma once

#include <cstdint>

#include "engine/core/device.h"
#include "engine/optim/gradient.h"

namespace tessera {

// One parameter and the numbers of its step.
template <class T> struct SgdItem {
  int64_t n;             // elements
  T* p;                  // the parameter
  GradientNumbers<T> g;  // its gradient
  T* b;                  // its momentum; null without momentum
  T rate, lambda;        // eta, weight decay
};

// Updates element i by the formula in sgd.h.
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
  // Steps all `count` items, in one pass over memory. Nothing changes if *norm, the gradients' norm in the
  // arrays' memory, is not finite; a null norm counts as finite.
  template <class T>
  static void step(const SgdItem<T>* items, int64_t count, T momentum, bool nesterov, const double* norm);
};

}  // namespace tessera
