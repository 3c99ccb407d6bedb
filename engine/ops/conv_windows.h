#pragma once

// The windows of a convolution on the CPU, and the pixel that each of their taps reads.

#include <cstdint>

#include "engine/ops/conv_kernels.h"

namespace tessera {

// Calls inside(row, y, x, k) for tap k of each window of the rows [first, last) that reads pixel (y, x) of
// the map, and outside(row, k) for each tap that reads the padding; `row` numbers the windows.
template <class Inside, class Outside>
void each_tap(const ConvSize& s, int64_t first, int64_t last, Inside inside, Outside outside) {
  for (int64_t i = first; i < last; ++i)
    for (int64_t j = 0; j < s.out_w; ++j)
      for (int64_t u = 0; u < s.kernel_h; ++u)
        for (int64_t v = 0; v < s.kernel_w; ++v) {
          const int64_t y = i * s.stride + u - s.padding, x = j * s.stride + v - s.padding;
          const int64_t row = (i - first) * s.out_w + j, k = u * s.kernel_w + v;
          if (y >= 0 && y < s.height && x >= 0 && x < s.width)
            inside(row, y, x, k);
          else
            outside(row, k);
        }
}

}  // namespace tessera
