#pragma once

#include <string>
#include <vector>

#include "apps/training/checkpoint.h"
#include "apps/training/evaluation.h"

namespace tessera {

// The at most `count` pictures with the fewest right pixels, each with its mask and the predicted mask.
std::string masks_section(const Checkpoint& checkpoint, const std::vector<Judgement>& judgements,
                          const Dataset& dataset, size_t count, Device device);

// A grid of images drawn by a diffusion model, one row for each class.
std::string samples_section(const Checkpoint& checkpoint, Device device);

// The colour of class k in drawn masks; neighbouring classes have distinct hues. [3] bytes
std::array<uint8_t, 3> class_color(int64_t k);

}  // namespace tessera
