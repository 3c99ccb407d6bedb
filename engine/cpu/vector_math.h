#pragma once

// Functions of whole vectors (engine/cpu/simd.h), for loops that decide what stays in registers. The scalar
// functions are in fast_math.h.

#include <bit>
#include <cmath>
#include <cstdint>

#include "engine/cpu/simd.h"

namespace tessera {

// exp(x) for differences from a maximum, x <= 0 or slightly above. As fast_exp: float within 2e-7, 0 below
// -86.9 (also for -inf), NaN for NaN; double by the standard library.
inline Vector<float> exp_of_differences(const Vector<float>& x) {
  typedef uint32_t Bits __attribute__((vector_size(vector_bytes)));
  const auto lost = x < -86.9f;
  const Vector<float> kept = lost ? Vector<float>{} : x;
  // x = n ln 2 + r, |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to an integer n and leaves it in the low bits.
  const Vector<float> shifted = kept * 1.44269504f + 12582912.0f, n = shifted - 12582912.0f;
  const Vector<float> r = (kept - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
  Vector<float> y = r * 0.00138145985f + 0.008368717f;                     // exp(r), minimax on that range
  y = y * r + 0.041668388f;
  y = y * r + 0.166665205f;
  y = y * r + 0.499999935f;
  y = y * r + 1.0f;
  y = y * r + 1.0f;
  const Vector<float> power =
      std::bit_cast<Vector<float>>((std::bit_cast<Bits>(shifted) << 23) + (127u << 23));
  return lost ? Vector<float>{} : y * power;
}

inline Vector<double> exp_of_differences(const Vector<double>& x) {
  Vector<double> y{};
  for (int i = 0; i < lanes<double>; ++i) y[i] = std::exp(x[i]);
  return y;
}

}  // namespace tessera
