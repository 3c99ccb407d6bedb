#include "engine/core/random.h"

#include <cmath>
#include <numbers>

#include "engine/core/error.h"

namespace tessera {

uint32_t Random::bits() {
  const uint64_t at = state_.position++;
  if (at / 4 != block_number_) {
    block_number_ = at / 4;
    block_ = philox(state_.seed, block_number_, state_.stream);
  }
  return block_[at % 4];
}

uint64_t Random::bits64() {
  const uint64_t high = bits();
  return high << 32 | bits();
}

double Random::uniform() { return static_cast<double>(bits64() >> 11) * 0x1p-53; }

double Random::uniform(double low, double high) { return low + (high - low) * uniform(); }

int64_t Random::below(int64_t n) {
  check(n > 0, "random: below(", n, ") has no value to give");
  const uint64_t range = static_cast<uint64_t>(n), rejected = (0 - range) % range;
  uint64_t draw = bits64();
  while (draw < rejected) draw = bits64();
  return static_cast<int64_t>(draw % range);
}

double Random::normal() {  // Box and Muller (1958), of whose two values the cosine's is used
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

double Random::truncated_normal(double low, double high) {
  check(low < high, "random: no normal value between ", low, " and ", high);
  double draw = normal();
  while (draw < low || draw > high) draw = normal();
  return draw;
}

Random Random::split(uint64_t tag) const {
  const auto mixed = philox(state_.seed ^ 0x9E3779B97F4A7C15u, tag, state_.stream);
  return Random(state_.seed, uint64_t{mixed[0]} << 32 | mixed[1]);
}

}  // namespace tessera
