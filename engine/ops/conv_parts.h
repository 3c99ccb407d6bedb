#pragma once

// How the CPU's convolutions are cut, whatever multiplies them.

#include <algorithm>

#include "engine/core/parallel.h"
#include "engine/cpu/each.h"
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

  // Calls add(b, sums of the weight, sums of the bias) for every image b, with those of its chunk in parts
  // [chunks, stride], which begin as zeros.
  template <class W, class Add> void of_images(const ConvSize& s, W* parts, const Add& add) const {
    parallel_for(s.images, grain, [&](int64_t begin, int64_t end) {
      W* own = parts + begin / grain * stride;
      std::fill_n(own, stride, W(0));
      for (int64_t b = begin; b < end; ++b) add(b, own, own + s.out * length);
    });
  }

  // Adds up the chunks in their order, in the first one's memory, and leaves the gradients where they belong.
  // parts [chunks, stride]
  template <class T>
  void total(const ConvSize& s, Wide<T>* parts, const Target<T>& dweight, const Target<T>& dbias) const {
    // Weight (o, c, k) lies in this place of a chunk, whose order is (o, k, c).
    const auto place = [&](int64_t o, int64_t c, int64_t k) {
      return o * length + k / s.kernel_w * row + k % s.kernel_w * pixel + c;
    };
    parallel_for(dweight ? s.out : 0, 1, [&](int64_t o, int64_t) {
      add_parts(o * length, (o + 1) * length, chunks, stride, parts);
      for (int64_t c = 0; c < s.in; ++c)
        write_each(0, s.window(), dweight.data + (o * s.in + c) * s.window(), dweight.add,
                   [&](int64_t k) { return parts[place(o, c, k)]; });
    });
    if (!dbias) return;
    Wide<T>* const bias = parts + s.out * length;
    add_parts(0, s.out, chunks, stride, bias);
    write_each(0, s.out, dbias.data, dbias.add, [=](int64_t o) { return bias[o]; });
  }
};

}  // namespace tessera
