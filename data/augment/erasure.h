#pragma once

#include <array>

#include "engine/core/random.h"

namespace tessera {

/// Rows top .. bottom-1 and columns left .. right-1 are erased. `noise` is the stream that noise is drawn
/// from.
struct Erasure {
  int top = 0, left = 0, bottom = 0, right = 0;
  Random::State noise{};

  TESSERA_HD bool covers(int y, int x) const { return y >= top && y < bottom && x >= left && x < right; }
};

/// One value a channel, or noise.
struct ErasingFill {
  std::array<float, 3> value{};
  bool noise = false;
};

}  // namespace tessera
