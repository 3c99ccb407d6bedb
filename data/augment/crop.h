#pragma once

#include <algorithm>
#include <cstring>

#include "data/augment/operation.h"
#include "engine/core/random.h"

namespace tessera {

// Moves the image up by `down` and left by `right` pixels, in place; uncovered pixels become black. This
// equals padding it with p black pixels on all sides and cropping the old size at row p + down, column p +
// right.
inline void shift_image(Image& image, int down, int right) {
  const int rows = image.height, columns = image.width;
  const int kept = std::max(0, columns - std::abs(right));  // pixels of a row that stay in the image
  for (int i = 0; i < rows; ++i) {
    const int y = down >= 0 ? i : rows - 1 - i, from = y + down;  // reads a row before it is overwritten
    const int left = right >= 0 ? 0 : columns - kept;
    if (from < 0 || from >= rows || kept == 0) {
      std::memset(image.at(y, 0), 0, size_t{3} * static_cast<size_t>(columns));
      continue;
    }
    std::memmove(image.at(y, left), image.at(from, std::max(0, right)),
                 size_t{3} * static_cast<size_t>(kept));
    std::memset(image.at(y, right >= 0 ? kept : 0), 0, size_t{3} * static_cast<size_t>(columns - kept));
  }
}

// Pads the image with `padding` black pixels on each side and crops the old size. The row, drawn first, and
// the column are uniform on 0 .. 2 padding.
struct PaddedCrop {
  int padding;

  int most_changes() const { return 1; }
  void draw(Random& random, int, int, std::vector<Change>& to) const {
    const int down = static_cast<int>(random.below(2 * padding + 1)) - padding;
    const int right = static_cast<int>(random.below(2 * padding + 1)) - padding;
    to.push_back({.kind = Change::Kind::shift,
                  .down = down,
                  .right = right,
                  .map = {.c = static_cast<double>(right), .f = static_cast<double>(down)}});
  }
  void operator()(Image& image, Random& random, Layer layer) const {
    draw_and_apply(*this, image, random, layer);
  }
};

}  // namespace tessera
