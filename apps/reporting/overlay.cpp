#include "apps/reporting/overlay.h"

#include <algorithm>
#include <cmath>

#include "data/formats/resize.h"

namespace tessera {

namespace {

constexpr int least_side = 224;  // pixels
constexpr int gap = 6;           // between the pictures
constexpr size_t most_columns = 6;

uint8_t byte(double unit) { return static_cast<uint8_t>(std::lround(255 * std::clamp(unit, 0.0, 1.0))); }

// Scales the map to 0 .. 255 and enlarges it smoothly.
Image heat_image(const HeatMap& map, int side) {
  const auto [low, high] = std::minmax_element(map.values.begin(), map.values.end());
  const double range = std::max(*high - *low, 1e-12);
  Image image(static_cast<int>(map.grid.height), static_cast<int>(map.grid.width));
  for (size_t i = 0; i < map.values.size(); ++i)
    std::fill_n(image.pixels.begin() + static_cast<int64_t>(3 * i), 3, byte((map.values[i] - *low) / range));
  return resize_bilinear(image, side, side);
}

// A colour scale from black over red and yellow to white.
double warm(double heat, int channel) { return std::clamp(3 * heat - channel, 0.0, 1.0); }

Image tinted(const Image& picture, const HeatMap& map) {
  const Image heat = heat_image(map, picture.height);
  Image out = picture;
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < out.width; ++x) {
      const double h = heat.at(y, x)[0] / 255.0;
      for (int c = 0; c < 3; ++c)
        out.at(y, x)[c] = byte((0.35 + 0.4 * h) * picture.at(y, x)[c] / 255.0 + 0.32 * warm(h, c));
    }
  return out;
}

void put(Image& sheet, const Image& picture, size_t row, size_t column) {
  const int top = static_cast<int>(row) * (picture.height + gap),
            left = static_cast<int>(column) * (picture.width + gap);
  for (int y = 0; y < picture.height; ++y)
    std::copy_n(picture.at(y, 0), 3 * picture.width, sheet.at(top + y, left));
}

}  // namespace

Image overlay(const Image& image, const std::vector<HeatMap>& first_row, const std::vector<HeatMap>& others) {
  const int side = image.height * ((least_side + image.height - 1) / image.height);
  const Image picture = resize_bilinear(image, side, side);
  const size_t columns = std::max(first_row.size() + 1, std::min(most_columns, others.size())),
               rows = 1 + (others.size() + columns - 1) / columns;
  const auto length = [&](size_t count) { return static_cast<int>(count) * (side + gap) - gap; };
  Image sheet(length(rows), length(columns));
  std::fill(sheet.pixels.begin(), sheet.pixels.end(), uint8_t{255});
  put(sheet, picture, 0, 0);
  for (size_t i = 0; i < first_row.size(); ++i) put(sheet, tinted(picture, first_row[i]), 0, i + 1);
  for (size_t i = 0; i < others.size(); ++i)
    put(sheet, tinted(picture, others[i]), 1 + i / columns, i % columns);
  return sheet;
}

}  // namespace tessera
