#pragma once

#include <cmath>
#include <cstdint>

#include "engine/core/device.h"

namespace tessera {

// One parameter in one step.
template <class T> struct AdamWItem {
  int64_t n;     // elements
  T* p;          // the parameter
  const T* g;    // its gradient
  T *m, *v;      // its moments
  T keep;        // 1 - eta lambda
  T rate;        // eta / (1 - beta1^t)
  T correction;  // 1 / sqrt(1 - beta2^t)
};

template <class T> struct AdamWRates {
  T beta1, rest1, beta2, rest2, eps;  // rest = 1 - beta, rounded once
  const double* norm = nullptr;       // on the device: the gradient's; where not finite, nothing changes
};

// One element; the formula stands in adamw.h.
template <class T>
TESSERA_HD inline void adamw_update(T& p, T g, T& m, T& v, const AdamWItem<T>& item, const AdamWRates<T>& r) {
  m = r.beta1 * m + r.rest1 * g;
  v = r.beta2 * v + r.rest2 * g * g;
  p = item.keep * p - item.rate * m / (item.correction * std::sqrt(v) + r.eps);
}

template <class Dev> struct AdamWKernels {
  // The step of all `count` items, each read and written in a single pass.
  template <class T> static void step(const AdamWItem<T>* items, int64_t count, const AdamWRates<T>& rates);
};

}  // namespace tessera
