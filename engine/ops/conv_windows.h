#pragma once

// The windows of a convolution on the CPU, and the pixel that each of their taps reads.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "engine/cpu/simd.h"
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

namespace detail {

// Copies (and widens, for a U that is not T) a few numbers, too few to be worth a call of memcpy.
template <class T, class U> inline void copy_row(const T* from, int64_t n, U* to) {
  int64_t k = 0;
  if constexpr (std::is_same_v<T, bf16> && std::is_same_v<U, bf16>)
    for (; k + 16 <= n; k += 16) __builtin_memcpy(to + k, from + k, 16 * sizeof(bf16));
  else if constexpr (std::is_same_v<T, U>)
    for (; k + lanes<T> <= n; k += lanes<T>) store_vector(to + k, load_vector(from + k));
  for (; k < n; ++k) to[k] = U(from[k]);
}

}  // namespace detail

// Copies the windows of the rows [first, last) of an image, in its type or wider, each as (kernel_h,
// kernel_w, in) numbers followed by zeros up to `length`: [(last - first) out_w, length]. The taps of one row
// of a window are contiguous in the map.
template <class T, class U>
void copy_windows(const ConvSize& s, const T* image, int64_t first, int64_t last, int64_t length, U* rows) {
  const int64_t across = s.kernel_w * s.in, used = s.window() * s.in;
  for (int64_t i = first; i < last; ++i)
    for (int64_t j = 0; j < s.out_w; ++j, rows += length) {
      const int64_t x = j * s.stride - s.padding, left = std::clamp<int64_t>(-x, 0, s.kernel_w),
                    right = std::clamp<int64_t>(s.width - x, left, s.kernel_w);
      for (int64_t u = 0; u < s.kernel_h; ++u) {
        const int64_t y = i * s.stride + u - s.padding;
        U* to = rows + u * across;
        const bool inside = y >= 0 && y < s.height;
        const int64_t begin = inside ? left * s.in : 0, end = inside ? right * s.in : 0;
        for (int64_t k = 0; k < begin; ++k) to[k] = U(0.0f);
        if (begin < end) detail::copy_row(image + (y * s.width + x) * s.in + begin, end - begin, to + begin);
        for (int64_t k = end; k < across; ++k) to[k] = U(0.0f);
      }
      for (int64_t k = used; k < length; ++k) rows[k] = U(0.0f);
    }
}

}  // namespace tessera
