#pragma once

#include "engine/cpu/log_sum_exp.h"
#include "engine/cuda/rows.h"

namespace tessera {

// log_sum_exp() of a row by the lanes of a warp, each of which has the result.
template <class T>
__device__ inline LogSumExp<Wide<T>> warp_log_sum_exp(const T* x, int64_t width, int lane) {
  using W = Wide<T>;
  W max = -W(INFINITY);
  for (int64_t j = lane; j < width; j += warp) max = Larger::of(W(x[j]), max);
  max = warp_max(max);
  return {max, lanes_sum<W>(width, lane, [=](int64_t j) { return fast_exp(W(x[j]) - max); })};
}

}  // namespace tessera
