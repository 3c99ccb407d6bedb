#pragma once

#include <array>
#include <cstdint>

#include "engine/core/device.h"

namespace tessera {

/// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): four random words
/// that depend on the arguments alone, so any draw is computed without the ones before it.
TESSERA_HD inline std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter, uint64_t stream = 0) {
  uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
  uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0, p1 = uint64_t{0xCD9E8D57u} * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0,
                   n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

/// 32 random bits as a number in [0, 1), exact in float.
TESSERA_HD inline float unit_float(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

/// A stream of random draws. Its whole state is three numbers, so that it can be saved and resumed exactly.
class Random {
 public:
  struct State {
    uint64_t seed = 0, stream = 0, position = 0;
    bool operator==(const State&) const = default;
  };

  explicit Random(uint64_t seed, uint64_t stream = 0) : state_{seed, stream, 0} {}
  explicit Random(const State& state) : state_(state) {}

  uint32_t bits();                                   ///< 32 random bits
  uint64_t bits64();                                 ///< 64
  double uniform();                                  ///< in [0, 1), 53 bits
  double uniform(double low, double high);           ///< in [low, high)
  int64_t below(int64_t n);                          ///< in 0 .. n-1, unbiased; fails unless n > 0
  double normal();                                   ///< mean 0, deviation 1
  double truncated_normal(double low, double high);  ///< normal, redrawn until in [low, high]
  bool chance(double probability) { return uniform() < probability; }

  /// An independent stream with the same seed. It depends on the tag and not on what was drawn here so far.
  Random split(uint64_t tag) const;

  const State& state() const { return state_; }

 private:
  State state_;
  std::array<uint32_t, 4> block_{};  ///< the four words that the last draw was one of
  uint64_t block_number_ = ~uint64_t{0};
};

}  // namespace tessera
