#pragma once

// Colours, textures and the canvas for the images of shapes.h.

#include <array>
#include <vector>

#include "data/formats/image.h"
#include "engine/core/random.h"

namespace tessera {

// Red, green and blue from 0 to 1.
using Paint = std::array<double, 3>;

// The range of colours: backgrounds are darker, shapes brighter, clutter is anything.
struct Brightness {
  double low, high;
};
inline constexpr Brightness dark{0, 0.6}, bright{0.4, 1}, any_brightness{0, 1};

// Two colours and a pattern that mixes them over the image.
struct Texture {
  enum Kind { plain, gradient, stripes, checks, blobs, kinds };

  Paint low, high;
  int64_t kind;
  double fx, fy, phase;  // radians a pixel

  double mix(int y, int x) const;  // share of `high` at a pixel, 0 to 1
};

Texture random_texture(const Brightness& in, Random& random);
// A bright texture, redrawn until its colours contrast with those of `behind`.
Texture contrasting_texture(const Texture& behind, Random& random);

struct Canvas {
  int size;
  std::vector<Paint> pixels;  // [size, size]

  // Paints the texture; `cover` is the share of each pixel, 0 to 1, that it covers. [size, size]
  void paint(const std::vector<float>& cover, const Texture& texture);
  // The canvas as an image, with a little noise.
  Image to_image(Random& random) const;
};

}  // namespace tessera
