#pragma once

#include <cstdint>

namespace tessera {

/// Rows top .. bottom-1 and columns left .. right-1 of an image.
struct PixelBox {
  int64_t top = 0, left = 0, bottom = 0, right = 0;

  int64_t area() const { return (bottom - top) * (right - left); }
  bool operator==(const PixelBox&) const = default;
};

}  // namespace tessera
