// Compiled without contraction: products and sums are rounded one by one, as Pillow's are.
#include "data/augment/affine.h"

#include <charconv>
#include <cmath>
#include <numbers>
#include <vector>

#include "data/augment/affine_kernels.h"
#include "data/augment/scratch.h"

namespace tessera {

namespace {

Pixels pixels_of(const Image& image) { return {image.pixels.data(), image.height, image.width}; }

// Calls write(y, x, to) for all pixels of the image, after its old pixels were moved to scratch memory.
template <class F> void for_pixels(Image& image, F&& write) {
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) write(y, x, image.at(y, x));
}

void scale_nearest(const Image& from, const Affine& m, const Colour& fill, Image& image) {
  std::vector<int> columns(static_cast<size_t>(image.width)), rows(static_cast<size_t>(image.height));
  column_positions(m, image.width, columns.data());
  row_positions(m, image.height, rows.data());
  for_pixels(image, [&](int y, int x, uint8_t* to) {
    const int row = rows[static_cast<size_t>(y)], column = columns[static_cast<size_t>(x)];
    set_pixel(to, row < 0 || column < 0 ? fill.data() : from.at(row, column));
  });
}

// Rounds to 15 decimals as Python's round() does: through text, because only that is exact.
double to_15_decimals(double value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, 15);
  std::from_chars(text.data(), end.ptr, value);
  return value;
}

}  // namespace

void transform(Image& image, const Affine& map, Filter filter, const Colour& fill) {
  if (image.pixels.empty()) return;
  const Image& before = set_aside(image);
  const Pixels from = pixels_of(before);
  const FixedMap fixed(map);
  if (filter == Filter::bicubic)
    for_pixels(image,
               [&](int y, int x, uint8_t* to) { write_filtered<CubicFilter>(from, map, y, x, fill, to); });
  else if (filter == Filter::bilinear)
    for_pixels(image,
               [&](int y, int x, uint8_t* to) { write_filtered<LinearFilter>(from, map, y, x, fill, to); });
  else if (map.b == 0 && map.d == 0)
    scale_nearest(before, map, fill, image);
  else
    for_pixels(image, [&](int y, int x, uint8_t* to) { fixed.write(from, y, x, fill, to); });
}

Affine rotation(double degrees, int height, int width) {
  const double angle = -(degrees * (std::numbers::pi / 180.0));
  const double cosine = to_15_decimals(std::cos(angle)), sine = to_15_decimals(std::sin(angle)),
               minus_sine = to_15_decimals(-std::sin(angle));
  const double x = width / 2.0, y = height / 2.0;
  return {cosine,     sine,   (cosine * -x + sine * -y) + x,
          minus_sine, cosine, (minus_sine * -x + cosine * -y) + y};
}

void turn(Image& image, int quarters) {
  const Image& from = set_aside(image);
  for_pixels(image, [&](int y, int x, uint8_t* to) {
    const PixelPlace place = before_turns(quarters, y, x, image.height, image.width);
    set_pixel(to, from.at(place.row, place.column));
  });
}

}  // namespace tessera
