#pragma once

#include <utility>

#include "data/formats/image.h"

namespace tessera {

// Takes the pixels out of `image`, which keeps its size and is to be written anew: for operations that read
// what lies around a pixel. One picture a thread is kept so, until the next call, and its memory goes round.
inline const Image& set_aside(Image& image) {
  thread_local Image before;
  std::swap(before, image);
  image.resize(before.height, before.width);
  return before;
}

}  // namespace tessera
