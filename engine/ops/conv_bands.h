#pragma once

// The pixels that some rows of windows read, as products in pairs of bf16 read them. A row of a window is
// contiguous in a map, and the windows beside it begin `stride` pixels further on, so they are rows of a left
// factor that overlap in memory: only the padding asks for a copy, of each pixel once and not once for every
// window that it lies in.

#include <algorithm>
#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/ops/conv_kernels.h"

namespace tessera {

// How a band lies in memory: pixels of an even number of channels, the last of an odd number a zero.
struct BandSize {
  int64_t channels;  // of a pixel
  int64_t across;    // numbers of a window's row
  int64_t row;       // numbers from one row of pixels to the next
  bool copied;       // else the image itself is read

  explicit BandSize(const ConvSize& s)
      : channels(s.in + s.in % 2),
        across(s.kernel_w * channels),
        row(s.in * s.width),
        copied(s.padding > 0 || s.in % 2 == 1) {
    if (copied) row = ((s.out_w - 1) * s.stride + s.kernel_w) * channels;
  }
};

// The rows of pixels that `count` rows of windows read.
inline int64_t band_rows(const ConvSize& s, int64_t count) { return (count - 1) * s.stride + s.kernel_h; }

// Copies the pixels that the rows of windows [first, last) of an image read, with zeros around it.
// to [band_rows, row]
inline void copy_band(const ConvSize& s, const BandSize& size, const bf16* image, int64_t first, int64_t last,
                      bf16* to) {
  const bf16 zero(0.0f);
  const int64_t width = size.row / size.channels, left = std::min(s.padding, width),
                right = std::clamp(s.width + s.padding, left, width);
  for (int64_t i = 0; i < band_rows(s, last - first); ++i, to += size.row) {
    const int64_t y = first * s.stride - s.padding + i;
    const bool inside = y >= 0 && y < s.height;
    const bf16* from = image + y * s.width * s.in;
    std::fill(to, to + (inside ? left * size.channels : size.row), zero);
    if (!inside) continue;
    bf16* pixel = to + left * size.channels;
    if (size.channels == s.in)
      std::copy_n(from, (right - left) * s.in, pixel);
    else
      for (int64_t x = 0; x < right - left; ++x, from += s.in)
        std::fill(std::copy_n(from, s.in, pixel + x * size.channels), pixel + (x + 1) * size.channels, zero);
    std::fill(to + right * size.channels, to + size.row, zero);
  }
}

}  // namespace tessera
