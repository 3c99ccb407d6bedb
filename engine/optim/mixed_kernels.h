#pragma once

#include <cstdint>

#include "engine/core/dtype.h"

namespace tessera {

struct MixedItem {
  int64_t n;  // elements
  float* wide;
  bf16* narrow;
  bool add;  // widen adds
};

template <class Dev> struct MixedKernels {
  // narrow = wide, rounded to nearest, for all `count` items.
  static void narrow(const MixedItem* items, int64_t count);
  // wide = narrow, or wide += narrow where the item says so.
  static void widen(const MixedItem* items, int64_t count);
};

}  // namespace tessera
