#pragma once

#include <array>

#include "data/formats/image.h"

namespace tessera {

enum class Filter { nearest, bilinear, bicubic };
using Colour = std::array<uint8_t, 3>;
inline constexpr Colour mid_grey{128, 128, 128};

/// An affine map from the new image back to the old one: the point (x, y) of the new image shows the point
/// (a x + b y + c, d x + e y + f) of the old one, in pixels from the top left corner.
struct Affine {
  double a = 1, b = 0, c = 0;
  double d = 0, e = 1, f = 0;
};

/// The map of two steps, `first` and then `second`: from the last image back to the one before both.
constexpr Affine chained(const Affine& first, const Affine& second) {
  const auto& [a, b, c, d, e, f] = first;
  return {a * second.a + b * second.d, a * second.b + b * second.e, a * second.c + b * second.f + c,
          d * second.a + e * second.d, d * second.b + e * second.e, d * second.c + e * second.f + f};
}

/// Transforms the image in place by `map`; the size stays, and pixels whose source lies outside get `fill`.
/// The result equals that of Image.transform in Pillow 8.0 to 9.4 bit for bit: nearest computes in 16.16
/// fixed point if there is shear or rotation, the cubic kernel has slope -1 (a resize has -1/2), results are
/// truncated.
void transform(Image& image, const Affine& map, Filter filter, const Colour& fill);

/// The map that turns an image counter-clockwise by `degrees` about its centre, as Pillow's Image.rotate.
Affine rotation(double degrees, int height, int width);
/// Turns the image counter-clockwise by 1 to 3 quarter turns, which move whole pixels. For 1 and 3 it must be
/// square.
void turn(Image& image, int quarters);

}  // namespace tessera
