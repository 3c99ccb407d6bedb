#pragma once

#include <cmath>
#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/cpu/fast_math.h"

#ifndef __CUDACC__
#include "engine/cpu/row_sums.h"
#include "engine/cpu/vector_math.h"
#endif

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
  Vector<W> most = Vector<W>{} - W(INFINITY);
  int64_t j = 0;
  for (; j + lanes<W> <= width; j += lanes<W>) most = largest<W>(load_wide(x + j), most);
  W max = largest_of_lanes<W>(most);
  for (; j < width; ++j) max = W(x[j]) > max ? W(x[j]) : max;
  const auto exponential = [=](auto value) {
    if constexpr (std::is_same_v<decltype(value), W>)
      return fast_exp(value - max);
    else
      return exp_of_differences(value - max);
  };
  return {max, sum_each(width, exponential, x)};
}
#endif

}  // namespace tessera
