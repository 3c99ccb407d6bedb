#pragma once

#include <optional>
#include <string>

#include "data/augment/erasing.h"
#include "data/augment/mix.h"
#include "data/augment/photometric.h"
#include "data/augment/randaugment.h"
#include "data/augment/resized_crop.h"
#include "data/augment/scene_crop.h"

namespace tessera {

/// The augmentations of a training batch, in the order in which they are applied.
struct AugmentOptions {
  std::optional<SceneCropOptions> scene_crop{};      ///< of the stored image and its mask
  std::optional<ResizedCropOptions> resized_crop{};  ///< of the stored image
  bool flip = true;                                  ///< left-right, with probability 1/2
  int crop_padding = 4;       ///< black pixels on each side before the random crop; 0: no crop
  std::string autoaugment{};  ///< a policy of data/augment/autoaugment.h; "": none
  std::optional<RandAugmentOptions> randaugment{};
  std::optional<PhotometricOptions> photometric{};
  ErasingOptions erasing{};
  MixOptions mix{};  ///< of whole batches, by the loader
};

/// Pictures as they are stored.
inline const AugmentOptions no_augmentation{.flip = false, .crop_padding = 0};

}  // namespace tessera
