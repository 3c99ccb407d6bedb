#pragma once

// Arithmetic for results that are then rounded to bf16: exponentials and quotients come from the special
// function unit, which is exact to about 20 bits.

#include <type_traits>

#include "engine/core/dtype.h"
#include "engine/cpu/fast_math.h"
#include "engine/cuda/special.h"

namespace tessera {

struct Approximate {
  float value;

  template <class N>
  requires std::is_arithmetic_v<N> __device__ Approximate(N n) : value(static_cast<float>(n)) {}
  __device__ explicit operator float() const { return value; }
};

__device__ inline Approximate operator-(Approximate a) { return -a.value; }
__device__ inline Approximate operator+(Approximate a, Approximate b) { return a.value + b.value; }
__device__ inline Approximate operator-(Approximate a, Approximate b) { return a.value - b.value; }
__device__ inline Approximate operator*(Approximate a, Approximate b) { return a.value * b.value; }
__device__ inline bool operator<(Approximate a, Approximate b) { return a.value < b.value; }
__device__ inline bool operator>(Approximate a, Approximate b) { return a.value > b.value; }
__device__ inline Approximate operator/(Approximate a, Approximate b) {
  return a.value * fast_reciprocal(b.value);
}

__device__ inline Approximate fast_exp(Approximate x) { return fast_exp2(1.44269504f * x.value); }
__device__ inline Approximate fast_log1p(Approximate t) { return log1p_of(t); }
__device__ inline Approximate fast_tanh(Approximate x) { return tanh_of(x); }
__device__ inline Normal<Approximate> fast_normal(Approximate x) { return normal_of(x); }

// The type in which an activation is computed when its result is rounded to a T.
template <class T> using ActivationMath = std::conditional_t<std::is_same_v<T, bf16>, Approximate, Wide<T>>;

}  // namespace tessera
