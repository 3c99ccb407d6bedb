#pragma once

#include <array>

#include "data/image.h"

namespace tessera {

enum class Filter { nearest, bilinear, bicubic };
using Colour = std::array<uint8_t, 3>;
inline constexpr Colour mid_grey{128, 128, 128};

// Where the pixel with its centre at (x, y) of the new picture comes from in the old one: (a x + b y + c,
// d x + e y + f), in pixels from the top left corner.
struct Affine {
  double a = 1, b = 0, c = 0;
  double d = 0, e = 1, f = 0;
};

// The picture seen through `map`, of the same size, in place; `fill` where the source lies outside. Bit for
// bit Pillow's Image.transform of 8.0 to 9.4: nearest in 16.16 fixed point where there is shear or rotation,
// the cubic with slope -1 (not the -1/2 of a resize), results truncated.
void transform(Image& image, const Affine& map, Filter filter, const Colour& fill);

// Turned counter-clockwise by so many degrees about its centre, of the same size: Pillow's Image.rotate.
void rotate(Image& image, double degrees, Filter filter, const Colour& fill);

}  // namespace tessera
