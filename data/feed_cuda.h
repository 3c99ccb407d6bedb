#pragma once

// The kernels of a Feed.

#include <cuda_runtime.h>

#include "data/feed.h"

namespace tessera {

// Applies changes to images of the set.
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

// Whether images of this size fit in a block's shared memory.
bool can_change_pictures(int height, int width);

// Makes a batch from bytes: normalises, erases, mixes.
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
