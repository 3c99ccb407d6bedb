#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/core/scratch.h"
#include "engine/cpu/each.h"
#include "engine/ops/conv_windows.h"

namespace tessera {

template <> template <class T> void UnfoldKernels<Cpu>::forward(const ConvSize& s, const T* x, T* y) {
  parallel_for(s.images, 1, [&](int64_t b, int64_t) {
    const T* image = x + b * s.height * s.width * s.in;
    T* rows = y + b * s.positions() * s.in * s.window();
    const auto put = [&](int64_t row, int64_t k, const T* pixel) {
      for (int64_t c = 0; c < s.in; ++c) rows[(row * s.in + c) * s.window() + k] = pixel ? pixel[c] : T(0.f);
    };
    each_tap(
        s, 0, s.out_h,
        [&](int64_t row, int64_t i, int64_t j, int64_t k) { put(row, k, image + (i * s.width + j) * s.in); },
        [&](int64_t row, int64_t k) { put(row, k, nullptr); });
  });
}

template <>
template <class T>
void UnfoldKernels<Cpu>::backward(const ConvSize& s, const T* dy, Target<T> dx) {
  const int64_t pixels = s.height * s.width * s.in;
  parallel_for(s.images, 1, [&](int64_t b, int64_t) {
    using W = Wide<T>;
    const T* rows = dy + b * s.positions() * s.in * s.window();
    W* sum = thread_scratch<W, 0>(pixels);
    std::fill_n(sum, pixels, W(0));
    each_tap(
        s, 0, s.out_h,
        [&](int64_t row, int64_t i, int64_t j, int64_t k) {
          for (int64_t c = 0; c < s.in; ++c)
            sum[(i * s.width + j) * s.in + c] += W(rows[(row * s.in + c) * s.window() + k]);
        },
        [](int64_t, int64_t) {});
    T* image = dx.data + b * pixels;
    for (int64_t i = 0; i < pixels; ++i) store(image[i], dx.add ? W(image[i]) + sum[i] : sum[i]);
  });
}

TESSERA_FOR_FLOATS(UnfoldKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(UnfoldKernels<Cpu>::backward)

}  // namespace tessera
