#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace tessera {

// Splits the innermost axis, of `size` entries, off an index: returns index % size and divides index by size.
// Divides in 32 bits where the numbers allow it, because 64 bits are several times slower.
__device__ inline int64_t split_off(int64_t& index, int64_t size) {
  const int64_t outer = ((index | size) >> 32) == 0
                            ? static_cast<int64_t>(static_cast<uint32_t>(index) / static_cast<uint32_t>(size))
                            : index / size;
  const int64_t entry = index - outer * size;
  index = outer;
  return entry;
}

}  // namespace tessera
