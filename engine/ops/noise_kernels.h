#pragma once

#include <cmath>
#include <cstdint>

#include "engine/core/convert_kernels.h"
#include "engine/core/random.h"

namespace tessera {

inline constexpr int64_t noise_chunk = 4096;  // numbers of one stream of draws

// Number i of a key's noise: the (i % noise_chunk)-th normal() of Random(key, i / noise_chunk).
TESSERA_HD inline double noise_at(uint64_t key, int64_t i) {
  const auto words =
      philox(key, static_cast<uint64_t>(i % noise_chunk), static_cast<uint64_t>(i / noise_chunk));
  const auto uniform = [](uint32_t high, uint32_t low) {
    return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
  };
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform(words[0], words[1])));
  return radius * std::cos(6.283185307179586 * uniform(words[2], words[3]));
}

template <class Dev> struct NoiseKernels {
  // y [n]
  template <class T> static void fill(int64_t n, uint64_t key, T* y);
};

}  // namespace tessera
