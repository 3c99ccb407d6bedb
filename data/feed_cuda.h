#pragma once

// The kernels of a feed.

#include <cuda_runtime.h>

#include "data/feed.h"

namespace tessera {

// Pictures of the set, changed.
struct ChangeWork {
  const uint8_t* set;         // [pictures, H, W, 3]
  const FeedRecord* records;  // [images]
  const Change* changes;      // [images, most_changes]
  int most_changes;
  int64_t images;
  int height, width;
  uint8_t* to;  // [images, H, W, 3]
};
void change_pictures(const ChangeWork& work);

// Whether a block has room for pictures of this size.
bool can_change_pictures(int height, int width);

// A batch, from bytes to what a step reads.
struct PackWork {
  const uint8_t* bytes;       // [images, H, W, 3]
  const FeedRecord* records;  // [images]
  const float* table;         // [3, 256]
  ErasingFill fill;
  int64_t images;
  int height, width;
  FeedMix mix;
  FeedTarget target;
};
void pack_batch(const PackWork& work);

}  // namespace tessera
