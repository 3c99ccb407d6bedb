#pragma once

// Arithmetic for numbers that are then rounded to bf16: exponentials and quotients by the special function
// unit, right to about 20 bits.

#include <type_traits>

#include "engine/core/dtype.h"
#include "engine/cpu/fast_math.h"
#include "engine/cuda/special.h"

namespace tessera {

struct Rough {
  float value;

  template <class N>
  requires std::is_arithmetic_v<N> __device__ Rough(N n) : value(static_cast<float>(n)) {}
  __device__ explicit operator float() const { return value; }
};

__device__ inline Rough operator-(Rough a) { return -a.value; }
__device__ inline Rough operator+(Rough a, Rough b) { return a.value + b.value; }
__device__ inline Rough operator-(Rough a, Rough b) { return a.value - b.value; }
__device__ inline Rough operator*(Rough a, Rough b) { return a.value * b.value; }
__device__ inline bool operator<(Rough a, Rough b) { return a.value < b.value; }
__device__ inline bool operator>(Rough a, Rough b) { return a.value > b.value; }
__device__ inline Rough operator/(Rough a, Rough b) { return a.value * fast_reciprocal(b.value); }

__device__ inline Rough fast_exp(Rough x) { return fast_exp2(1.44269504f * x.value); }
__device__ inline Rough fast_log1p(Rough t) { return log1p_of(t); }
__device__ inline Rough fast_tanh(Rough x) { return tanh_of(x); }
__device__ inline Normal<Rough> fast_normal(Rough x) { return normal_of(x); }

// The type in which a function of one number is computed whose result is rounded to a T.
template <class T> using Fine = std::conditional_t<std::is_same_v<T, bf16>, Rough, Wide<T>>;

}  // namespace tessera
