#pragma once

#include <cmath>
#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/cpu/fast_math.h"

namespace tessera {

// log sum_k exp(x_k) of a row as max + log(sum). The two parts are not added here, because a large maximum
// would take the logarithm's digits.
template <class W> struct LogSumExp {
  W max, sum;  // sum of exp(x_k - max)

  W log() const { return std::log(sum); }
};

#ifndef __CUDACC__
// For the CPU kernels.
template <class T> LogSumExp<Wide<T>> log_sum_exp(const T* x, int64_t width) {
  using W = Wide<T>;
  W max = -INFINITY, sum = 0;
#pragma omp simd reduction(max : max)
  for (int64_t j = 0; j < width; ++j) max = W(x[j]) > max ? W(x[j]) : max;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < width; ++j) sum += fast_exp(W(x[j]) - max);
  return {max, sum};
}
#endif

}  // namespace tessera
