#pragma once

#include <cstdint>

#include "engine/core/random.h"

namespace tessera {

/// The settings of one forward pass. In training, batch norms use the batch's statistics, and dropout and
/// drop path drop values (unless `drop` is off) by draws from `random`.
struct Pass {
  bool training = false;
  Random random{0};
  bool drop = true;
  /// Only the answer and the gradients are wanted. A network may leave out what they do not depend on: tokens
  /// of its last block that no head reads, and images that drop a branch.
  bool answer_only = false;
  uint64_t keys = 0;  ///< how many keys have been drawn

  bool drops() const { return training && drop; }

  uint64_t key() {  // a new key, from which one op derives its draws (philox)
    ++keys;
    return random.bits64();
  }
};

}  // namespace tessera
