#pragma once

#include "data/formats/image.h"

namespace tessera {

// A picture whose pixels all differ from their neighbours.
inline Image coloured(int64_t size) {
  Image image(static_cast<int>(size), static_cast<int>(size));
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * 37 % 251);
  return image;
}

}  // namespace tessera
