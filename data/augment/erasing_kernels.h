#pragma once

// The scalar maths of random erasing (erasing.h), shared by both devices with equal bits. Compiled without
// contraction into fused multiply-adds.

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "data/augment/erasure.h"
#include "engine/core/random.h"

namespace tessera {

namespace erasing_detail {

// The natural logarithm of x > 0, by 2 artanh((m - 1) / (m + 1)) of its mantissa m. It is written out because
// std::log differs between libraries and devices, while plain arithmetic does not.
TESSERA_HD inline double logarithm(double x) {
  constexpr uint64_t mantissa = (uint64_t{1} << 52) - 1, one = uint64_t{1023} << 52;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & mantissa) | one);
  if (m > std::numbers::sqrt2) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1), square = s * s;
  double sum = 0;
  for (int k = 21; k > 0; k -= 2) sum = sum * square + 1.0 / k;
  return 2 * s * sum + exponent * std::numbers::ln2;
}

// cos(2 pi u) for u in [0, 1), by the Taylor series within an eighth of a turn.
TESSERA_HD inline double cosine_of_turn(double u) {
  const int quarter = static_cast<int>(u * 4 + 0.5);
  const double t = (u - quarter * 0.25) * (2 * std::numbers::pi), square = t * t;
  const bool odd = quarter % 2 != 0;
  double rest = 0;  // the series after its first term
  for (int k = odd ? 19 : 18; k > 1; k -= 2) rest = (1 + rest) * -square / (k * (k - 1));
  const double value = odd ? t * (1 + rest) : 1 + rest;
  return quarter % 4 == 1 || quarter % 4 == 2 ? -value : value;
}

}  // namespace erasing_detail

// A normal number from two uniform ones by the method of Box and Muller, as in Random::normal().
TESSERA_HD inline float noise_of(double first, double second) {
  const double radius = std::sqrt(-2.0 * erasing_detail::logarithm(1.0 - first));
  return static_cast<float>(radius * erasing_detail::cosine_of_turn(second));
}

// Element n of the noise, computed without its predecessors; each takes four words of the stream.
TESSERA_HD inline float noise_at(const Random::State& from, uint64_t n) {
  const uint64_t position = from.position + 4 * n, offset = position % 4;
  const auto here = philox(from.seed, position / 4, from.stream),
             next = offset == 0 ? here : philox(from.seed, position / 4 + 1, from.stream);
  const auto uniform = [&](uint64_t word) {  // from the words offset + word and the next one
    const uint64_t high = offset + word, low = high + 1;
    const uint64_t bits =
        uint64_t{high < 4 ? here[high] : next[high - 4]} << 32 | (low < 4 ? here[low] : next[low - 4]);
    return static_cast<double>(bits >> 11) * 0x1p-53;
  };
  return noise_of(uniform(0), uniform(2));
}

}  // namespace tessera
