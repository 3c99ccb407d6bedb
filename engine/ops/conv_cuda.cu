// The convolution: windows are copied into rows (im2col), which cuBLASLt multiplies, some images at a time.
// Weights are permuted to (kernel_h, kernel_w, in), the order of a window in memory.

#include "engine/core/dispatch.h"
#include "engine/cuda/biased.h"
#include "engine/cuda/deep_product.h"
#include "engine/cuda/reduce.h"
#include "engine/ops/conv_kernels.h"
#include "engine/ops/conv_windows_cuda.h"

namespace tessera {

namespace {

// The windows as rows, each in the order (c, y, x) or, with `last`, (y, x, c).
template <class T> void windows(const ConvSize& s, bool last, int64_t images, const T* x, T* rows) {
  using W = Wide<T>;
  const WindowMap map_of(s);
  const int64_t in = s.in, window = s.window();
  map(images * s.positions() * window * in, rows, false, [=] __device__(int64_t at) {
    int64_t c = last ? split_off(at, in) : 0;
    const int64_t k = split_off(at, window);
    if (!last) c = split_off(at, in);
    const int64_t position = split_off(at, map_of.out_h * map_of.out_w);
    const int64_t pixel = map_of.pixel(position, k);
    return pixel < 0 ? W(0) : W(x[(at * map_of.height * map_of.width + pixel) * in + c]);
  });
}

// dx = the sum over every window's entries of that pixel.
template <class T>
void windows_back(const ConvSize& s, bool last, int64_t images, const T* drows, Target<T> dx) {
  using W = Wide<T>;
  const WindowMap map_of(s);
  const int64_t in = s.in, window = s.window();
  map(images * s.height * s.width * in, dx.data, dx.add, [=] __device__(int64_t at) {
    const int64_t c = split_off(at, in), x = split_off(at, map_of.width), y = split_off(at, map_of.height);
    const T* image = drows + at * map_of.out_h * map_of.out_w * window * in;
    W sum = 0;
    map_of.each_window(y, x, [&](int64_t position, int64_t k) {
      const int64_t entry = last ? k * in + c : c * window + k;
      sum += W(image[position * window * in + entry]);
    });
    return sum;
  });
}

// [out, in, window] -> [out, window, in]
template <class T> void channels_last(const ConvSize& s, const T* weight, T* turned) {
  using W = Wide<T>;
  const int64_t in = s.in, window = s.window();
  map(s.out * in * window, turned, false, [=] __device__(int64_t o) {
    const int64_t c = split_off(o, in), k = split_off(o, window);
    return W(weight[(o * in + c) * window + k]);
  });
}

// dweight [out, in, window] = the sum of `count` parts [out, window, in] in their order.
template <class T>
void sum_channels_first(const ConvSize& s, int64_t count, const T* parts, Target<T> dweight) {
  using W = Wide<T>;
  const int64_t in = s.in, window = s.window(), weights = s.out * in * window;
  map(weights, dweight.data, dweight.add, [=] __device__(int64_t o) {
    const int64_t k = split_off(o, window), c = split_off(o, in);
    W sum = 0;
    for (int64_t part = 0; part < count; ++part) sum += W(parts[part * weights + (o * window + k) * in + c]);
    return sum;
  });
}

// The images whose windows are multiplied at once: few enough that the rows fit in memory. The sizes alone
// fix it.
int64_t images_at_once(const ConvSize& s) {
  constexpr int64_t most_elements = int64_t{1} << 27;
  const int64_t elements = std::max<int64_t>(1, s.positions() * s.window() * s.in);
  return std::clamp<int64_t>(most_elements / elements, 1, std::max<int64_t>(1, s.images));
}

// Calls f(first, count) for all images, images_at_once() at a time.
template <class F> void each_chunk(const ConvSize& s, F f) {
  const int64_t step = images_at_once(s);
  for (int64_t first = 0; first < s.images; first += step) f(first, std::min(step, s.images - first));
}

template <class T> void input_gradient(const ConvSize& s, const T* dy, const T* weight, Target<T> dx) {
  const int64_t length = s.window() * s.in, pixels = s.height * s.width * s.in;
  const Scratch<T> turned(s.out * length), rows(images_at_once(s) * s.positions() * length);
  channels_last(s, weight, turned.data());
  each_chunk(s, [&](int64_t first, int64_t count) {
    multiply(
        {.m = count * s.positions(), .n = length, .k = s.out, .lda = s.out, .ldb = length, .ldc = length},
        dy + first * s.positions() * s.out, turned.data(), rows.data(), false);
    windows_back(s, true, count, static_cast<const T*>(rows.data()),
                 Target<T>{dx.data + first * pixels, dx.add});
  });
}

template <class T> void weight_gradient(const ConvSize& s, const T* dy, const T* x, Target<T> dweight) {
  const int64_t length = s.window() * s.in, pixels = s.height * s.width * s.in, step = images_at_once(s);
  const int64_t chunks = (s.images + step - 1) / step;
  const Scratch<T> parts(chunks * s.out * length), rows(step * s.positions() * length);
  each_chunk(s, [&](int64_t first, int64_t count) {
    windows(s, true, count, x + first * pixels, rows.data());
    const MatrixProduct outer{.transpose_a = true,
                              .m = s.out,
                              .n = length,
                              .k = count * s.positions(),
                              .lda = s.out,
                              .ldb = length,
                              .ldc = length};
    DeepProduct<T>(outer, true)
        .run(dy + first * s.positions() * s.out, rows.data(), parts.data() + first / step * s.out * length,
             false);
  });
  sum_channels_first(s, chunks, static_cast<const T*>(parts.data()), dweight);
}

}  // namespace

template <>
template <class T>
void ConvKernels<Cuda>::forward(const ConvSize& s, const T* x, const T* weight, const T* bias, T* y) {
  const int64_t length = s.window() * s.in, pixels = s.height * s.width * s.in;
  const Scratch<T> turned(s.out * length), rows(images_at_once(s) * s.positions() * length);
  channels_last(s, weight, turned.data());
  each_chunk(s, [&](int64_t first, int64_t count) {
    windows(s, true, count, x + first * pixels, rows.data());
    multiply_biased({.transpose_b = true,
                     .m = count * s.positions(),
                     .n = s.out,
                     .k = length,
                     .lda = length,
                     .ldb = length,
                     .ldc = s.out},
                    static_cast<const T*>(rows.data()), static_cast<const T*>(turned.data()),
                    y + first * s.positions() * s.out, bias);
  });
}

template <>
template <class T>
void ConvKernels<Cuda>::backward(const ConvSize& s, const T* dy, const T* x, const T* weight,
                                 const LayerGradients<T>& gradients) {
  const auto& [dx, dweight, dbias] = gradients;
  if (dx) input_gradient(s, dy, weight, dx);
  if (dweight) weight_gradient(s, dy, x, dweight);
  if (dbias) sum_of_rows(s.images * s.positions(), s.out, dy, Wide<T>(1), dbias.data, dbias.add);
}

TESSERA_FOR_FLOATS(ConvKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(ConvKernels<Cuda>::backward)

template <> template <class T> void UnfoldKernels<Cuda>::forward(const ConvSize& s, const T* x, T* y) {
  windows(s, false, s.images, x, y);
}

template <>
template <class T>
void UnfoldKernels<Cuda>::backward(const ConvSize& s, const T* dy, Target<T> dx) {
  windows_back(s, false, s.images, dy, dx);
}

TESSERA_FOR_FLOATS(UnfoldKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(UnfoldKernels<Cuda>::backward)

}  // namespace tessera
