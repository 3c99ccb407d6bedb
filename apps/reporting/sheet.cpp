#include "apps/reporting/sheet.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "engine/core/error.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include <stb/stb_easy_font.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

namespace tessera {

namespace {

constexpr int scale = 2;  // pixels for each dot of the font
constexpr std::array<uint8_t, 3> paper{250, 250, 247}, ink{40, 44, 52}, faint_ink{130, 134, 142};

struct Corner {
  float x, y, z;
  std::array<uint8_t, 4> colour;
};

int width_of(std::string text) { return scale * stb_easy_font_width(text.data()); }

std::string printable(std::string text) {
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

// Shortens text that is wider than `width` pixels, with ".." at its end.
std::string fitted(std::string text, int width) {
  if (width_of(text) <= width) return text;
  while (!text.empty() && width_of(text + "..") > width) text.pop_back();
  return text + "..";
}

}  // namespace

Sheet::Sheet(int height, int width) {
  check_dimensions(height, width, "sheet");
  image_.resize(height, width);
  for (size_t i = 0; i < image_.pixels.size(); ++i) image_.pixels[i] = paper[i % 3];
}

void Sheet::put(const Image& image, int y, int x, int factor) {
  const int rows = std::min(image.height * factor, image_.height - y);
  const int columns = std::min(image.width * factor, image_.width - x);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      std::copy_n(image.at(i / factor, j / factor), 3, image_.at(y + i, x + j));
}

void Sheet::write(const std::string& text, int y, int x, int width, bool faint) {
  std::string line = fitted(printable(text), width);
  std::vector<Corner> corners(line.size() * 64 + 64);  // stb_easy_font needs 270 bytes a letter on average
  const int quads = stb_easy_font_print(0, 0, line.data(), nullptr, corners.data(),
                                        static_cast<int>(corners.size() * sizeof(Corner)));
  const auto& colour = faint ? faint_ink : ink;
  for (int q = 0; q < quads; ++q) {
    const Corner &first = corners[static_cast<size_t>(4 * q)],
                 &last = corners[static_cast<size_t>(4 * q + 2)];
    const auto at = [](float dots) { return static_cast<int>(std::lround(dots * scale)); };
    for (int i = y + at(first.y); i < std::min(y + at(last.y), image_.height); ++i)
      for (int j = x + at(first.x); j < std::min(x + at(last.x), image_.width); ++j)
        std::copy(colour.begin(), colour.end(), image_.at(i, j));
  }
}

}  // namespace tessera
