#pragma once

#include <algorithm>

#include "data/augment/operation.h"
#include "engine/core/random.h"

namespace tessera {

// Mirrors the image left-right, in place.
inline void flip_horizontally(Image& image) {
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width / 2; ++x)
      std::swap_ranges(image.at(y, x), image.at(y, x) + 3, image.at(y, image.width - 1 - x));
}

// Flips with probability 1/2.
struct RandomFlip {
  int most_changes() const { return 1; }
  void draw(Random& random, int, int width, std::vector<Change>& to) const {
    if (random.chance(0.5))
      to.push_back({.kind = Change::Kind::flip, .map = {.a = -1, .c = static_cast<double>(width)}});
  }
  void operator()(Image& image, Random& random, Layer layer) const {
    draw_and_apply(*this, image, random, layer);
  }
};

}  // namespace tessera
