#pragma once

#include <array>

#include "data/formats/image.h"

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

// What `first` did and then `second`: where the pixels of the last picture come from in the one before both.
constexpr Affine chained(const Affine& first, const Affine& second) {
  const auto& [a, b, c, d, e, f] = first;
  return {a * second.a + b * second.d, a * second.b + b * second.e, a * second.c + b * second.f + c,
          d * second.a + e * second.d, d * second.b + e * second.e, d * second.c + e * second.f + f};
}

// The picture seen through `map`, of the same size, in place; `fill` where the source lies outside. Bit for
// bit Pillow's Image.transform of 8.0 to 9.4: nearest in 16.16 fixed point where there is shear or rotation,
// the cubic with slope -1 (not the -1/2 of a resize), results truncated.
void transform(Image& image, const Affine& map, Filter filter, const Colour& fill);

// The map of a picture that is turned counter-clockwise by so many degrees about its centre: Pillow's
// Image.rotate.
Affine rotation(double degrees, int height, int width);
// Turned counter-clockwise by so many quarters, 1 to 3, whole pixels moving; with 1 or 3 it is a square.
void turn(Image& image, int quarters);

}  // namespace tessera
