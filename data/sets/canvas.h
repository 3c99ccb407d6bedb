#pragma once

// What the pictures of shapes (data/sets/shapes.h) are painted with.

#include <array>
#include <vector>

#include "data/formats/image.h"
#include "engine/core/random.h"

namespace tessera {

// Red, green and blue from 0 to 1.
using Paint = std::array<double, 3>;

// Backgrounds are darker, shapes brighter; clutter is anything.
struct Brightness {
  double low, high;
};
inline constexpr Brightness dark{0, 0.6}, bright{0.4, 1}, any_brightness{0, 1};

// Two colours and how they alternate over the picture.
struct Texture {
  enum Kind { plain, gradient, stripes, checks, blobs, kinds };

  Paint low, high;
  int64_t kind;
  double fx, fy, phase;  // radians a pixel

  double mix(int y, int x) const;  // 0: low, 1: high
};

Texture random_texture(const Brightness& in, Random& random);
// A bright one, redrawn until its colours stand out from those of `behind`.
Texture contrasting_texture(const Texture& behind, Random& random);

struct Canvas {
  int size;
  std::vector<Paint> pixels;  // [size, size]

  // `cover` is the share of each pixel, 0 to 1, that is painted over. [size, size]
  void paint(const std::vector<float>& cover, const Texture& texture);
  // Its bytes, with a little noise.
  Image developed(Random& random) const;
};

}  // namespace tessera
