#pragma once

#include <cmath>
#include <cstdint>

#include "engine/core/device.h"
#include "engine/optim/gradient.h"

namespace tessera {

// One parameter and the numbers of its step.
template <class T> struct AdamWItem {
  int64_t n;             // elements
  T* p;                  // the parameter
  GradientNumbers<T> g;  // its gradient
  T *m, *v;              // its moments
  T keep;                // 1 - eta lambda
  T rate;                // eta / (1 - beta1^t)
  T correction;          // 1 / sqrt(1 - beta2^t)
};

// The numbers of a step that all parameters share.
template <class T> struct AdamWRates {
  T beta1, rest1, beta2, rest2, eps;  // rest = 1 - beta, computed in double and rounded once
  const double* norm = nullptr;       // the gradients' norm, in the arrays' memory: if not finite, skip
};

// Updates one element by the formula in adamw.h.
template <class T>
TESSERA_HD inline void adamw_update(T& p, T g, T& m, T& v, const AdamWItem<T>& item, const AdamWRates<T>& r) {
  m = r.beta1 * m + r.rest1 * g;
  v = r.beta2 * v + r.rest2 * g * g;
  p = item.keep * p - item.rate * m / (item.correction * std::sqrt(v) + r.eps);
}

template <class Dev> struct AdamWKernels {
  // Steps all `count` items, in one pass over memory.
  template <class T> static void step(const AdamWItem<T>* items, int64_t count, const AdamWRates<T>& rates);
};

}  // namespace tessera
