#pragma once

#include <algorithm>

#include "data/augment/operation.h"
#include "engine/core/random.h"

namespace tessera {

// Left becomes right, in place.
inline void flip_horizontally(Image& image) {
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width / 2; ++x)
      std::swap_ranges(image.at(y, x), image.at(y, x) + 3, image.at(y, image.width - 1 - x));
}

// Flips with probability 1/2.
struct RandomFlip {
  void operator()(Image& image, Random& random, Layer) const {
    if (random.chance(0.5)) flip_horizontally(image);
  }
};

}  // namespace tessera
