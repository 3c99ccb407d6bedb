#pragma once

// The scalar maths of mixing (mix.h), shared by both devices. Compiled without contraction.

#include <cstdint>

#include "engine/core/device.h"

namespace tessera {

// Mixup of two numbers: `share` of the one's own picture.
struct Mixup {
  float share, rest;

  TESSERA_HD explicit Mixup(double lam) : share(static_cast<float>(lam)), rest(static_cast<float>(1 - lam)) {}
  TESSERA_HD float operator()(float own, float other) const { return share * own + rest * other; }
};

// What a picture has of class k: lam of its own, 1 - lam of the other's, which may be the same.
TESSERA_HD inline float share_of_class(int64_t k, int64_t own, int64_t other, double lam) {
  const float first = k == own ? static_cast<float>(lam) : 0.0f;
  return k == other ? first + static_cast<float>(1 - lam) : first;
}

}  // namespace tessera
