#pragma once

#include <cstdint>

#include "engine/core/random.h"

namespace tessera {

// One forward pass of a model: whether dropout and drop path act, and what they draw from.
struct Pass {
  bool training = false;
  Random random{0};

  uint64_t key() { return random.bits64(); }  // a fresh key for one op's draws
};

}  // namespace tessera
