#include "apps/reporting/overlay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "apps/reporting/sheet.h"
#include "data/formats/resize.h"

namespace tessera {

namespace {

constexpr int least_side = 224;  // pixels
constexpr int gap = 6;           // between the pictures
constexpr size_t most_columns = 6;

uint8_t byte(double unit) { return static_cast<uint8_t>(std::lround(255 * std::clamp(unit, 0.0, 1.0))); }

double largest(const HeatMap& map) { return *std::ranges::max_element(map.values); }

// The map's largest number, as a multiple of what each place would have if all had the same.
double times_even(const HeatMap& map) {
  double sum = 0;
  for (const double v : map.values) sum += v;
  return sum > 0 ? largest(map) * static_cast<double>(map.values.size()) / sum : 0;
}

// Scales the map from 0 .. high to 0 .. 255 and enlarges it smoothly.
Image heat_image(const HeatMap& map, double high, int side) {
  Image image(static_cast<int>(map.grid.height), static_cast<int>(map.grid.width));
  for (size_t i = 0; i < map.values.size(); ++i)
    std::fill_n(image.pixels.begin() + static_cast<int64_t>(3 * i), 3,
                byte(map.values[i] / std::max(high, 1e-12)));
  return resize_bilinear(image, side, side);
}

// A colour scale from black over red and yellow to white.
double warm(double heat, int channel) { return std::clamp(3 * heat - channel, 0.0, 1.0); }

// The picture's own brightness at heat h, 0 to 1, and the colour that is laid over it.
double shaded(double pixel, double h, int channel) {
  return (0.35 + 0.4 * h) * pixel + 0.32 * warm(h, channel);
}

Image tinted(const Image& picture, const HeatMap& map, double high) {
  const Image heat = heat_image(map, high, picture.height);
  Image out = picture;
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < out.width; ++x) {
      const double h = heat.at(y, x)[0] / 255.0;
      for (int c = 0; c < 3; ++c) out.at(y, x)[c] = byte(shaded(picture.at(y, x)[c] / 255.0, h, c));
    }
  return out;
}

// The colours of 0 .. 1 as they are over a grey picture.
Image colour_bar(int height, int width) {
  Image bar(height, width);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        bar.at(y, x)[c] = byte(shaded(0.5, static_cast<double>(x) / static_cast<double>(width - 1), c));
  return bar;
}

// Rows of panels, each with a line of text above it.
class Panels {
 public:
  Panels(int side, size_t rows, size_t columns, int lines)
      : side_(side),
        width_(static_cast<int>(columns) * (side + gap) + gap),
        head_(lines * Sheet::line_height + gap),
        foot_(head_ + static_cast<int>(rows) * row_height()),
        sheet_(foot_ + Sheet::line_height + gap, width_) {}

  void head(const std::string& title, const std::string& note) {
    sheet_.write(title, gap, gap, width_ - 2 * gap);
    sheet_.write(note, gap + Sheet::line_height, gap, width_ - 2 * gap, true);
  }
  void put(size_t row, size_t column, const std::string& name, const Image& picture) {
    const int y = head_ + static_cast<int>(row) * row_height(),
              x = gap + static_cast<int>(column) * (side_ + gap);
    sheet_.write(name, y, x, side_, row > 0 || column > 0);
    sheet_.put(picture, y + Sheet::line_height, x, 1);
  }
  void legend(const std::string& text) {
    const int length = side_ / 2, zero = 18;
    sheet_.write("0", foot_, gap, zero);
    sheet_.put(colour_bar(Sheet::line_height - 8, length), foot_, gap + zero, 1);
    const int x = gap + zero + length + gap;
    sheet_.write(text, foot_, x, width_ - x - gap, true);
  }
  const Image& image() const { return sheet_.image(); }

 private:
  int row_height() const { return Sheet::line_height + side_ + gap; }

  int side_, width_, head_, foot_;
  Sheet sheet_;
};

std::string caption(const NamedMap& named) {
  return fmt::format("{}  {:.1f}x", named.name, times_even(named.map));
}

}  // namespace

Image overlay(const Image& image, const std::vector<NamedMap>& first_row, const std::vector<NamedMap>& heads,
              const std::string& title, const std::string& note) {
  const int side = image.height * ((least_side + image.height - 1) / image.height);
  const Image picture = resize_bilinear(image, side, side);
  const size_t columns = std::max(first_row.size() + 1, std::min(most_columns, heads.size())),
               rows = 1 + (heads.size() + columns - 1) / columns;
  Panels panels(side, rows, columns, note.empty() ? 1 : 2);
  panels.head(title, note);
  panels.put(0, 0, "picture", picture);
  for (size_t i = 0; i < first_row.size(); ++i)
    panels.put(0, i + 1, caption(first_row[i]), tinted(picture, first_row[i].map, largest(first_row[i].map)));
  double high = 0;
  for (const NamedMap& head : heads) high = std::max(high, largest(head.map));
  for (size_t i = 0; i < heads.size(); ++i)
    panels.put(1 + i / columns, i % columns, caption(heads[i]), tinted(picture, heads[i].map, high));
  panels.legend(std::string(heads.empty() ? "the largest" : "the largest of all heads") +
                "; 1.0x is an even share");
  return panels.image();
}

}  // namespace tessera
