#pragma once

#include <utility>

#include "data/formats/image.h"
#include "engine/core/per_thread.h"

namespace tessera {

// Moves the pixels of `image` to scratch memory of this thread and returns them; the image keeps its size and
// is to be overwritten. For operations that read the neighbours of a pixel. The result is valid until the
// next call on the same thread, which reuses the memory.
inline const Image& set_aside(Image& image) {
  static const PerThread<Image> images;
  Image& before = images.of_this_thread();
  std::swap(before, image);
  image.resize(before.height, before.width);
  return before;
}

}  // namespace tessera
