#pragma once

#include <memory>

#include "data/dataset.h"

namespace tessera {

/// `count` images of `split`, drawn by `seed` without repetition and kept in their order. A count of 0 or of
/// the split's size returns the split itself. Fails if the split has fewer images.
std::shared_ptr<const Split> subset(std::shared_ptr<const Split> split, int64_t count, uint64_t seed);

}  // namespace tessera
