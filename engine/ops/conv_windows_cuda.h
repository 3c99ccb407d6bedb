#pragma once

#include "engine/cuda/index.h"
#include "engine/cuda/reduce.h"
#include "engine/ops/conv_kernels.h"

namespace tessera {

// The pixel that a tap of a window reads, and the windows that read a pixel. The indices of one image fit in
// 32 bits.
struct WindowMap {
  int height, width, kernel_h, kernel_w, stride, padding, out_h, out_w;

  explicit WindowMap(const ConvSize& s)
      : height(static_cast<int>(s.height)),
        width(static_cast<int>(s.width)),
        kernel_h(static_cast<int>(s.kernel_h)),
        kernel_w(static_cast<int>(s.kernel_w)),
        stride(static_cast<int>(s.stride)),
        padding(static_cast<int>(s.padding)),
        out_h(static_cast<int>(s.out_h)),
        out_w(static_cast<int>(s.out_w)) {}

  // y * width + x of tap k of the window at `position`, -1 outside of the map.
  __device__ int pixel(int64_t position, int64_t k) const {
    const int at = static_cast<int>(position), tap = static_cast<int>(k);
    const int y = at / out_w * stride + tap / kernel_w - padding;
    const int x = at % out_w * stride + tap % kernel_w - padding;
    return y >= 0 && y < height && x >= 0 && x < width ? y * width + x : -1;
  }

  // Calls f(position, k) for every tap that reads pixel (y, x).
  template <class F> __device__ void each_window(int64_t y, int64_t x, const F& f) const {
    for (int u = 0; u < kernel_h; ++u) {
      const int i = before(static_cast<int>(y) + padding - u, out_h);
      for (int v = 0; i >= 0 && v < kernel_w; ++v) {
        const int j = before(static_cast<int>(x) + padding - v, out_w);
        if (j >= 0) f(i * out_w + j, u * kernel_w + v);
      }
    }
  }

 private:
  // The index of the window that begins at `start` of the padded axis, or -1.
  __device__ int before(int start, int windows) const {
    return start >= 0 && start % stride == 0 && start / stride < windows ? start / stride : -1;
  }
};

}  // namespace tessera
