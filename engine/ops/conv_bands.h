#pragma once

// The pixels that some rows of windows read. A row of a window is contiguous in a map, and the windows beside
// it begin `stride` pixels further on, so they are rows of a factor that overlap in memory: only the padding
// asks for a copy, of each pixel once and not once for every window that it lies in.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "engine/core/dtype.h"
#include "engine/core/scratch.h"
#include "engine/cpu/bf16_gemm.h"
#include "engine/cpu/each.h"
#include "engine/ops/conv_kernels.h"

namespace tessera {

// How a band lies in memory: the channels of a pixel are a multiple of `multiple`, the last ones zeros. An
// image in another type than the products', or whose last pixels are read beyond their end, is always copied.
struct BandSize {
  int64_t channels;  // of a pixel
  int64_t across;    // numbers of a window's row
  int64_t row;       // numbers from one row of pixels to the next
  bool copied;       // else the image itself is read

  explicit BandSize(const ConvSize& s, int64_t multiple, bool always_copied = false)
      : channels((s.in + multiple - 1) / multiple * multiple),
        across(s.kernel_w * channels),
        row(s.in * s.width),
        copied(always_copied || s.padding > 0 || channels != s.in) {
    if (copied) row = ((s.out_w - 1) * s.stride + s.kernel_w) * channels;
  }
};

// The rows of pixels that `count` rows of windows read.
inline int64_t band_rows(const ConvSize& s, int64_t count) { return (count - 1) * s.stride + s.kernel_h; }

namespace detail {

template <class T, class U> void copy_pixels(const T* from, int64_t n, U* to) {
  if constexpr (std::is_same_v<T, U>) {
    std::copy_n(from, n, to);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] = U(from[i]);
  }
}

}  // namespace detail

// Copies the pixels that the rows of windows [first, last) of an image read, with zeros around it.
// to [band_rows, row]
template <class T, class U>
void copy_band(const ConvSize& s, const BandSize& size, const T* image, int64_t first, int64_t last, U* to) {
  const int64_t width = size.row / size.channels, left = std::min(s.padding, width),
                right = std::clamp(s.width + s.padding, left, width);
  for (int64_t i = 0; i < band_rows(s, last - first); ++i, to += size.row) {
    const int64_t y = first * s.stride - s.padding + i;
    const bool inside = y >= 0 && y < s.height;
    const T* from = image + y * s.width * s.in;
    clear(to, inside ? left * size.channels : size.row);
    if (!inside) continue;
    U* pixel = to + left * size.channels;
    if (size.channels == s.in)
      detail::copy_pixels(from, (right - left) * s.in, pixel);
    else
      for (int64_t x = 0; x < right - left; ++x, from += s.in)
        clear(std::copy_n(from, s.in, pixel + x * size.channels), size.channels - s.in);
    clear(to + right * size.channels, size.row - right * size.channels);
  }
}

// Where the pixels lie, as numbers of type U, that the windows of the rows [first, last) read; at most `most`
// rows at a time. A copy lies in the thread's scratch memory `which`, and a panel may be read past its end.
template <class U, int which, class T>
const U* band(const ConvSize& s, const BandSize& size, const T* image, int64_t first, int64_t last,
              int64_t most) {
  if constexpr (std::is_same_v<T, U>)
    if (!size.copied) return image + first * s.stride * size.row;
  U* copy = thread_scratch<U, which>(band_rows(s, most) * size.row + bf16_panel);
  copy_band(s, size, image, first, last, copy);
  return copy;
}

}  // namespace tessera
