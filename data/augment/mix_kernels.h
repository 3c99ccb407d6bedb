#pragma once

// The scalar maths of mixing (mix.h), shared by both devices. It is compiled without contraction into fused
// multiply-adds.

#include <cstdint>

#include "engine/core/device.h"

namespace tessera {

// Mixup of two values: `share` of the own image, `rest` of the other.
struct Mixup {
  float share, rest;

  TESSERA_HD explicit Mixup(double lam) : share(static_cast<float>(lam)), rest(static_cast<float>(1 - lam)) {}
  TESSERA_HD float operator()(float own, float other) const { return share * own + rest * other; }
};

// The share of class k in a mixed image: lam if it is its own class, plus 1 - lam if it is the other's.
TESSERA_HD inline float share_of_class(int64_t k, int64_t own, int64_t other, double lam) {
  const float first = k == own ? static_cast<float>(lam) : 0.0f;
  return k == other ? first + static_cast<float>(1 - lam) : first;
}

}  // namespace tessera
