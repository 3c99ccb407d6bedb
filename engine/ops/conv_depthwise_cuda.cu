// The depthwise convolution: the channels are last, so that the lanes of a warp read neighbours.

#include "engine/core/dispatch.h"
#include "engine/ops/conv_windows_cuda.h"

namespace tessera {

template <>
template <class T>
void DepthwiseConvKernels<Cuda>::forward(const ConvSize& s, const T* x, const T* weight, const T* bias,
                                         T* y) {
  using W = Wide<T>;
  const WindowMap map_of(s);
  const int64_t in = s.in, out = s.out, window = s.window();
  map(s.images * s.positions() * out, y, false, [=] __device__(int64_t at) {
    const int64_t o = split_off(at, out), position = split_off(at, map_of.out_h * map_of.out_w);
    int64_t c = o;
    split_off(c, out / in);
    const T* image = x + at * map_of.height * map_of.width * in;
    W sum = bias ? W(bias[o]) : W(0);
    for (int64_t k = 0; k < window; ++k) {
      const int64_t pixel = map_of.pixel(position, k);
      if (pixel >= 0) sum += W(weight[o * window + k]) * W(image[pixel * in + c]);
    }
    return sum;
  });
}

namespace {

template <class T> void input_gradient(const ConvSize& s, const T* dy, const T* weight, Target<T> dx) {
  using W = Wide<T>;
  const WindowMap map_of(s);
  const int64_t in = s.in, out = s.out, window = s.window(), each = out / in;
  map(s.images * s.height * s.width * in, dx.data, dx.add, [=] __device__(int64_t at) {
    const int64_t c = split_off(at, in), x = split_off(at, map_of.width), y = split_off(at, map_of.height);
    const T* image = dy + at * map_of.out_h * map_of.out_w * out;
    W sum = 0;
    map_of.each_window(y, x, [&](int64_t position, int64_t k) {
      for (int64_t o = c * each; o < (c + 1) * each; ++o)
        sum += W(weight[o * window + k]) * W(image[position * out + o]);
    });
    return sum;
  });
}

// dweight(o, k) = the sum over images and positions of dy x: columns (k, o), so that neighbours are channels.
template <class T> void weight_gradient(const ConvSize& s, const T* dy, const T* x, Target<T> dweight) {
  using W = Wide<T>;
  const WindowMap map_of(s);
  const int64_t in = s.in, out = s.out, window = s.window(), each = out / in;
  const Scratch<W> sums(window * out);
  column_sums(
      s.images * s.positions(), window * out,
      [=] __device__(int64_t row, int64_t k) {
        const int64_t o = split_off(k, out);
        const T* const d = dy + row * out + o;
        const int64_t position = split_off(row, map_of.out_h * map_of.out_w);
        const int64_t pixel = map_of.pixel(position, k);
        int64_t c = o;
        split_off(c, each);
        return pixel < 0 ? W(0) : W(*d) * W(x[(row * map_of.height * map_of.width + pixel) * in + c]);
      },
      W(1), sums.data(), false);
  const W* const sum = sums.data();
  map(window * out, dweight.data, dweight.add, [=] __device__(int64_t o) {
    const int64_t k = split_off(o, window);
    return sum[k * out + o];
  });
}

}  // namespace

template <>
template <class T>
void DepthwiseConvKernels<Cuda>::backward(const ConvSize& s, const T* dy, const T* x, const T* weight,
                                          const LayerGradients<T>& gradients) {
  const auto& [dx, dweight, dbias] = gradients;
  if (dx) input_gradient(s, dy, weight, dx);
  if (dweight) weight_gradient(s, dy, x, dweight);
  if (dbias) sum_of_rows(s.images * s.positions(), s.out, dy, Wide<T>(1), dbias.data, dbias.add);
}

TESSERA_FOR_FLOATS(DepthwiseConvKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(DepthwiseConvKernels<Cuda>::backward)

}  // namespace tessera
