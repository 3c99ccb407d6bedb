#pragma once

#include <string>
#include <vector>

#include "apps/training/checkpoint.h"
#include "apps/training/evaluation.h"

namespace tessera {

// The pictures that a segmenter does worst, at most `count`: each with its mask and the predicted one.
std::string masks_section(const Checkpoint& checkpoint, const std::vector<Judgement>& judgements,
                          const Dataset& dataset, size_t count, Device device);

// A few images that a diffusion model draws, a row a class.
std::string samples_section(const Checkpoint& checkpoint, Device device);

// A colour a class, distinct for any number of them. [3] bytes
std::array<uint8_t, 3> class_color(int64_t k);

}  // namespace tessera
