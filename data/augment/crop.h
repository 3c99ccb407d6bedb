#pragma once

#include <algorithm>
#include <cstring>

#include "data/augment/operation.h"
#include "engine/core/random.h"

namespace tessera {

// The picture moved up by `down` and left by `right` pixels, in place; what comes in is black. The same as a
// black margin p on all sides and a crop of the old size at row p + down, column p + right.
inline void shift_image(Image& image, int down, int right) {
  const int rows = image.height, columns = image.width;
  const int kept = std::max(0, columns - std::abs(right));  // pixels of a row that stay in the picture
  for (int i = 0; i < rows; ++i) {
    const int y = down >= 0 ? i : rows - 1 - i, from = y + down;  // a row is read before it is written over
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

// Pads with `padding` black pixels a side and cuts the old size out; row and column are uniform on
// 0 .. 2 padding, the row drawn first.
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
