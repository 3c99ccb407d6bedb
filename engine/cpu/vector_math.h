#pragma once

// Functions of whole vectors (engine/cpu/simd.h), for loops that decide what stays in registers. The scalar
// functions are in fast_math.h.

#include <bit>
#include <cmath>
#include <cstdint>

#include "engine/cpu/simd.h"

namespace tessera {

// exp(x) for differences from a maximum, x <= 0 or slightly above. Float: within 2e-7 of the result near 0,
// and below about as far from it as x's own rounding is; 0 below -88 (also for -inf), NaN for NaN. Double: by
// the standard library. The chain of operations that depend on one another is short, because a processor
// holds only a few vectors that wait for theirs.
inline Vector<float> exp_of_differences(const Vector<float>& x) {
  typedef uint32_t Bits __attribute__((vector_size(vector_bytes)));
  constexpr float log2_e = 1.44269504f;
  // At the least x, n is -127, whose biased exponent 0 makes the factor 2^n exactly 0. A NaN stays.
  const Vector<float> least = Vector<float>{} - 88.0296919f;
  const Vector<float> kept = largest<float>(least, x);
  // x log2(e) = n + r, |r| <= 1/2. Adding 1.5 * 2^23 rounds to an integer; adding 127 to it leaves n's biased
  // exponent in the low bits.
  const Vector<float> shifted = kept * log2_e + 12583039.0f, n = shifted - 12583039.0f;
#if defined(__FMA__) || defined(__aarch64__)
  const Vector<float> r = kept * log2_e - n;  // rounded once
#else
  const Vector<float> r = ((kept - n * 0.693359375f) + n * 2.12194440e-4f) * log2_e;  // ln 2 in two parts
#endif
  Vector<float> y = r * 0.000153533620f + 0.00133988739f;  // 2^r, minimax on that range
  y = y * r + 0.00961843692f;
  y = y * r + 0.0555033237f;
  y = y * r + 0.240226477f;
  y = y * r + 0.693147182f;
  y = y * r + 1.0f;
  return y * std::bit_cast<Vector<float>>(std::bit_cast<Bits>(shifted) << 23);
}

inline Vector<double> exp_of_differences(const Vector<double>& x) {
  Vector<double> y{};
  for (int i = 0; i < lanes<double>; ++i) y[i] = std::exp(x[i]);
  return y;
}

}  // namespace tessera
