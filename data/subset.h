#pragma once

#include <memory>

#include "data/dataset.h"

namespace tessera {

// `count` pictures of `split`, drawn by `seed` without repeats and kept in their order; the split itself for
// 0 or its own size. Fails if it has fewer.
std::shared_ptr<const Split> subset(std::shared_ptr<const Split> split, int64_t count, uint64_t seed);

}  // namespace tessera
