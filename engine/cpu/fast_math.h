#pragma once

// Functions of one number that the compiler can vectorise. For float (and types that compute like it) they
// are polynomials without branches or tables, exact to a few units of the last place; for double they are the
// standard library's. The coefficients are minimax fits (Lawson's algorithm) over the ranges named beside
// them.

#include <bit>
#include <cmath>
#include <cstdint>

#include "engine/core/device.h"

// A loop is vectorised only if everything that it calls is inlined, however long that is.
#define TESSERA_IN_LOOPS TESSERA_HD __attribute__((always_inline)) inline

namespace tessera {

// c0 + c1 x + c2 x^2 + ...
template <class W, class... Rest> TESSERA_IN_LOOPS W polynomial(W x, float c0, Rest... rest) {
  if constexpr (sizeof...(rest) == 0)
    return c0;
  else
    return c0 + x * polynomial(x, rest...);
}

// `which ? a : b` by masks. A condition would make the compiler compute all that follows a second time, for
// the constant.
TESSERA_IN_LOOPS float choose(bool which, float a, float b) {
  const uint32_t mask = -static_cast<uint32_t>(which);
  return std::bit_cast<float>((std::bit_cast<uint32_t>(a) & mask) | (std::bit_cast<uint32_t>(b) & ~mask));
}

// exp(x). Relative error below 2e-7; 0 below -86.9, infinity above 88.73, so exp(-inf) is 0; NaN stays NaN.
TESSERA_IN_LOOPS float fast_exp(float x) {
  // x = n ln 2 + r, |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to an integer n and leaves it in the low bits.
  const float clamped = choose(x > 89.0f, 89.0f, x);
  const float shifted = clamped * 1.44269504f + 12582912.0f, n = shifted - 12582912.0f;
  const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
  // The result is 2 exp(r) times 2^(n - 1), so that neither factor overflows before the result does.
  const float twice =
      polynomial(r, 2.0f, 2.0f, 0.99999987f, 0.33333041f, 0.083336776f, 0.016737434f, 0.0027629197f);
  const float power = std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) << 23) + (126u << 23));
  return choose(x < -86.9f, 0.0f, twice * power);
}
TESSERA_HD inline double fast_exp(double x) { return std::exp(x); }

// log(1 + t) for 0 <= t <= 1, as 2 artanh(s), s = t / (2 + t).
template <class W> TESSERA_IN_LOOPS W log1p_of(W t) {
  const W s = t / (2 + t);
  return s * polynomial(s * s, 2.0f, 0.66666315f, 0.40024914f, 0.27960541f, 0.28178657f);
}
TESSERA_IN_LOOPS float fast_log1p(float t) { return log1p_of(t); }
TESSERA_HD inline double fast_log1p(double t) { return std::log1p(t); }

// log(x) for a normal x > 0: the exponent, and the fraction in [1, 2).
TESSERA_IN_LOOPS float fast_log(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const float exponent = static_cast<float>(static_cast<int32_t>(bits >> 23) - 127);
  const float fraction = std::bit_cast<float>((bits & 0x7fffffu) | 0x3f800000u);
  return exponent * 0.693147181f + fast_log1p(fraction - 1);
}
TESSERA_HD inline double fast_log(double x) { return std::log(x); }

template <class W> TESSERA_IN_LOOPS W tanh_of(W x) {
  const W size = x < 0 ? -x : x;
  const W far = 1 - 2 / (fast_exp(2 * size) + 1), square = x * x;
  const W near =
      x +
      x * square * polynomial(square, -0.33333282f, 0.13331442f, -0.053739696f, 0.020639021f, -0.0057049089f);
  return size < 0.625f ? near : x < 0 ? -far : far;
}
TESSERA_IN_LOOPS float fast_tanh(float x) { return tanh_of(x); }
TESSERA_HD inline double fast_tanh(double x) { return std::tanh(x); }

// The standard normal distribution at x: Phi(x) = (1 + erf(x / sqrt 2)) / 2, and its density phi(x).
template <class W> struct Normal { W cumulative, density; };

template <class W> TESSERA_IN_LOOPS Normal<W> normal_of(W x) {
  const W size = x < 0 ? -x : x, e = fast_exp(-0.5f * x * x);
  // Phi(-|x|) exp(x^2 / 2) varies slowly and is nearly a polynomial in t = 1 / (1 + 0.34 |x|). The relative
  // error in the tails is as small as in the middle.
  const W t = 1 / (1 + 0.34f * size);
  const W tail = e * t *
                 polynomial(t, 0.1356193454f, 0.1361334683f, 0.115035163f, 0.1160346751f, -0.04639436484f,
                            0.2047316105f, -0.2754613598f, 0.1406716362f, -0.02637016072f);
  return {x < 0 ? tail : 1 - tail, 0.398942280f * e};
}
TESSERA_IN_LOOPS Normal<float> fast_normal(float x) { return normal_of(x); }
TESSERA_HD inline Normal<double> fast_normal(double x) {
  return {0.5 * std::erfc(-x * 0.70710678118654752440), 0.39894228040143267794 * std::exp(-0.5 * x * x)};
}

}  // namespace tessera
