#pragma once

#include <array>

#include "data/dataset.h"

namespace tessera {

/// Converts bytes to normalised floats, (v / 255 - mean) / deviation by channel, and [H, W, 3] to [3, H, W].
/// A table holds the result for each of the 256 byte values of a channel.
class Normalise {
 public:
  explicit Normalise(const Normalisation& constants) {
    for (size_t c = 0; c < 3; ++c)
      for (size_t v = 0; v < 256; ++v)
        table_[c][v] = (static_cast<float>(v) / 255.0f - constants.mean[c]) / constants.deviation[c];
  }

  void operator()(const Image& image, float* to) const {
    const int64_t area = int64_t{image.height} * image.width;
    for (size_t c = 0; c < 3; ++c, to += area)
      for (int64_t p = 0; p < area; ++p) to[p] = table_[c][image.pixels[static_cast<size_t>(3 * p) + c]];
  }

  using Table = std::array<std::array<float, 256>, 3>;
  const Table& table() const { return table_; }

 private:
  Table table_;
};

}  // namespace tessera
