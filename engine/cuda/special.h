#pragma once

// Functions of the GPU's special function unit. They are accurate to about 22 bits, and results below 2^-126
// are 0. The unit has no double, which is computed in full precision.

#include <cuda_runtime.h>

#include <cmath>

namespace tessera {

#ifdef TESSERA_CUDA_EMULATED
inline float fast_exp2(float x) { return std::exp2(x); }
inline float fast_log2(float x) { return std::log2(x); }
inline float fast_reciprocal(float x) { return 1 / x; }
inline float fast_rsqrt(float x) { return 1 / std::sqrt(x); }
#else
__device__ inline float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float fast_log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float fast_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float fast_rsqrt(float x) { return rsqrtf(x); }
#endif
__device__ inline double fast_rsqrt(double x) { return 1 / std::sqrt(x); }

}  // namespace tessera
