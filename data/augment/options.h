#pragma once

#include <string>

#include "data/augment/erasing.h"
#include "data/mix.h"

namespace tessera {

// What may happen to the pictures of a training batch, in this order.
struct AugmentOptions {
  bool flip = true;           // left-right, half of the time
  int crop_padding = 4;       // black pixels a side before the random crop; 0: no crop
  std::string autoaugment{};  // a policy of data/augment/autoaugment.h; none if empty
  ErasingOptions erasing{};
  MixOptions mix{};  // of whole batches: the loader's part
};

}  // namespace tessera
