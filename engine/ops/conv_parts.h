#pragma once

// How the CPU's convolutions are cut, whatever multiplies them.

#include <algorithm>

#include "engine/core/parallel.h"
#include "engine/ops/conv_kernels.h"

namespace tessera {

// The rows of windows that are multiplied at a time: as many as fit in a part of the second cache. A window's
// row has so many bytes.
inline int64_t rows_at_once(const ConvSize& s, int64_t row_bytes) {
  constexpr int64_t bytes = 1 << 18, most = 512;
  return std::clamp<int64_t>(chunk_length(std::min(most, bytes / row_bytes)) / s.out_w, 1, s.out_h);
}

// Whether dx is a convolution of dy by the flipped weight (stride 1), and the sizes of that convolution.
inline bool turns_round(const ConvSize& s) {
  return s.stride == 1 && s.kernel_h == s.kernel_w && s.padding < s.kernel_h;
}
inline ConvSize turned_round(const ConvSize& s) {
  return {s.images, s.out_h, s.out_w, s.out, s.in, s.kernel_h, s.kernel_w, 1, s.kernel_h - 1 - s.padding,
          s.height, s.width};
}

// The gradients of weight and bias are summed by chunks of images, each into [out, length] of windows, whose
// rows are `row` numbers apart and their pixels `pixel`, and [out] of the bias; the chunks' sums follow one
// another.
struct ConvSums {
  int64_t row, pixel, grain, chunks, length, stride;

  ConvSums(const ConvSize& s, int64_t window, int64_t row_step, int64_t pixel_step)
      : row(row_step),
        pixel(pixel_step),
        grain(chunk_length(std::max<int64_t>((s.images + 15) / 16, 1))),
        chunks((s.images + grain - 1) / grain),
        length(window),
        stride(s.out * window + s.out) {}

  int64_t elements() const { return chunks * stride; }

  // Adds up the chunks in their order and leaves the gradients where they belong. parts [chunks, stride]
  template <class T>
  void total(const ConvSize& s, const Wide<T>* parts, const Target<T>& dweight,
             const Target<T>& dbias) const {
    const auto add_up = [&](int64_t n, const Wide<T>* part, const auto& at, const Target<T>& out) {
      if (!out) return;
      for (int64_t i = 0; i < n; ++i) {
        Wide<T> sum = out.add ? Wide<T>(out.data[i]) : Wide<T>(0);
        for (int64_t p = 0; p < chunks; ++p) sum += part[p * stride + at(i)];
        out.data[i] = T(sum);
      }
    };
    const auto turned = [&](int64_t i) {  // of weight i = (o, c, k) among (o, k, c)
      const int64_t k = i % s.window(), c = i / s.window() % s.in, o = i / s.window() / s.in;
      return o * length + k / s.kernel_w * row + k % s.kernel_w * pixel + c;
    };
    add_up(s.out * s.in * s.window(), parts, turned, dweight);
    add_up(
        s.out, parts + s.out * length, [](int64_t i) { return i; }, dbias);
  }
};

}  // namespace tessera
