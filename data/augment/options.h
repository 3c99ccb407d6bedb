#pragma once

#include <optional>
#include <string>

#include "data/augment/erasing.h"
#include "data/augment/photometric.h"
#include "data/augment/randaugment.h"
#include "data/augment/resized_crop.h"
#include "data/augment/scene_crop.h"
#include "data/mix.h"

namespace tessera {

// What may happen to the pictures of a training batch, in this order.
struct AugmentOptions {
  std::optional<SceneCropOptions> scene_crop{};      // of a picture with a mask, as they are stored
  std::optional<ResizedCropOptions> resized_crop{};  // of the picture as it is stored
  bool flip = true;                                  // left-right, half of the time
  int crop_padding = 4;                              // black pixels a side before the random crop; 0: no crop
  std::string autoaugment{};                         // a policy of data/augment/autoaugment.h; none if empty
  std::optional<RandAugmentOptions> randaugment{};
  std::optional<PhotometricOptions> photometric{};
  ErasingOptions erasing{};
  MixOptions mix{};  // of whole batches: the loader's part
};

}  // namespace tessera
