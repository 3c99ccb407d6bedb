#include "apps/reporting/sheet.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "apps/reporting/lettering.h"

namespace tessera {

namespace {

constexpr std::array<uint8_t, 3> paper{250, 250, 247}, ink{40, 44, 52}, faint_ink{110, 114, 122},
    rule_ink{230, 60, 40};

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

void Sheet::rule(int y, int x, int side, int step) {
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < side; ++j) {
      const bool on_line = i % step == 0 || j % step == 0 || i == side - 1 || j == side - 1;
      if (on_line && y + i < image_.height && x + j < image_.width)
        std::ranges::copy(rule_ink, image_.at(y + i, x + j));
    }
}

void Sheet::write(const std::string& text, int y, int x, int width, bool faint) {
  const LetteredLine line = letter_fitting(text, line_height, std::min(width, image_.width - x));
  const auto& colour = faint ? faint_ink : ink;
  const uint8_t* covered = line.coverage.data();
  for (int i = 0; i < line.height; ++i)
    for (int j = 0; j < line.width; ++j, ++covered) {
      if (*covered == 0 || y + i >= image_.height || x + j >= image_.width) continue;
      uint8_t* const pixel = image_.at(y + i, x + j);
      for (size_t c = 0; c < 3; ++c)
        pixel[c] = static_cast<uint8_t>((pixel[c] * (255 - *covered) + colour[c] * *covered + 127) / 255);
    }
}

}  // namespace tessera
