#pragma once

#include <cstdint>

#include "engine/core/random.h"

namespace tessera {

// One forward pass of a model. In training, batch norms take the batch's statistics, and dropout and drop
// path act, unless `drop` is off; what they draw comes from `random`.
struct Pass {
  bool training = false;
  Random random{0};
  bool drop = true;
  uint64_t keys = 0;  // that were drawn

  bool drops() const { return training && drop; }

  uint64_t key() {  // a fresh key for one op's draws
    ++keys;
    return random.bits64();
  }
};

}  // namespace tessera
