// The depthwise convolution: the channels are last, so every tap of a window is one loop over them. Where
// each has several filters, an image is copied with each channel as often, and has one filter a channel.

#include <algorithm>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/core/scratch.h"
#include "engine/cpu/column_sums.h"
#include "engine/cpu/each.h"
#include "engine/ops/conv_bf16.h"
#include "engine/ops/conv_depthwise_taps.h"
#include "engine/ops/conv_normed.h"

namespace tessera {

namespace {

// [out, window] -> [window, out], widened.
template <class T> std::vector<Wide<T>> taps_first(const ConvSize& s, const T* weight) {
  std::vector<Wide<T>> turned(static_cast<size_t>(s.out * s.window()));
  for (int64_t o = 0; o < s.out; ++o)
    for (int64_t k = 0; k < s.window(); ++k)
      turned[static_cast<size_t>(k * s.out + o)] = Wide<T>(weight[o * s.window() + k]);
  return turned;
}

constexpr int of_repeated = 30;  // key of a thread's scratch memory

// Calls f with the number of filters of a channel: as a constant if it is usual, so that loops over them
// become vectors.
template <class F> void with_filters(const ConvSize& s, F f) {
  const int64_t filters = s.out / s.in;
  if (filters == 1) return f(std::integral_constant<int64_t, 1>());
  if (filters == 2) return f(std::integral_constant<int64_t, 2>());
  f(filters);
}

// The map with every channel as often as it has filters. [height, width, out]
template <class T> const T* repeated_channels(const ConvSize& s, const T* image) {
  if (s.out == s.in) return image;
  const int64_t n = s.height * s.width * s.in;
  T* const repeated = thread_scratch<T, of_repeated>(s.height * s.width * s.out);
  with_filters(s, [=](auto filters) {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t r = 0; r < filters; ++r) repeated[i * filters + r] = image[i];
  });
  return repeated;
}

// The axes of the convolution and, turned, of the gradient of its input.
TapAxis rows_of(const ConvSize& s, bool turned = false) {
  return {turned ? s.height : s.out_h, turned ? s.out_h : s.height, s.kernel_h, s.stride, s.padding, turned};
}
TapAxis columns_of(const ConvSize& s, bool turned = false) {
  return {turned ? s.width : s.out_w, turned ? s.out_w : s.width, s.kernel_w, s.stride, s.padding, turned};
}

// The windows of an image. done(i) is called for every row of them that is written.
template <class T, class Done>
void forward_image(const TapPlan<T>& plan, const ConvSize& s, const T* image, const Wide<T>* taps,
                   const Wide<T>* start, T* y, const Done& done) {
  const auto write = [=, &s](int64_t i, int64_t j, const Wide<T>* sums) {
    write_each(0, s.out, y + (i * s.out_w + j) * s.out, false, [=](int64_t o) { return sums[o]; });
  };
  plan.each_sum(repeated_channels(s, image), taps, start, write, done);
}

// The gradient of an image. zeros [out]
template <class T>
void dx_of_image(const TapPlan<T>& plan, const ConvSize& s, const T* dy, const Wide<T>* taps,
                 const Wide<T>* zeros, const Target<T>& dx) {
  using W = Wide<T>;
  const auto write = [&](int64_t y, int64_t x, const W* sums) {
    with_filters(s, [=, &s, &dx](auto filters) {
      write_each(0, s.in, dx.data + (y * s.width + x) * s.in, dx.add, [=](int64_t c) {
        W sum = sums[c * filters];
        for (int64_t r = 1; r < filters; ++r) sum += sums[c * filters + r];
        return sum;
      });
    });
  };
  plan.each_sum(dy, taps, zeros, write, [](int64_t) {});
}

// filter_gradients() makes dweight and dbias from sums of the taps' gradients, [window, width]: add(b, sums)
// adds the part of image b. The images are cut into at most 16 parts with sums of their own.
template <class T, class Add>
void filter_gradients(const ConvSize& s, int64_t width, const T* dy, const Target<T>& dweight,
                      const Target<T>& dbias, const Add& add) {
  using W = Wide<T>;
  const int64_t grain = (s.images + 15) / 16, chunks = (s.images + grain - 1) / grain;
  const int64_t of_bias = s.window() * width, stride = of_bias + width, outputs = s.positions() * s.out;
  std::vector<W> parts(static_cast<size_t>(chunks * stride), W(0));
  parallel_for(s.images, grain, [&](int64_t begin, int64_t end) {
    W* own = parts.data() + begin / grain * stride;
    for (int64_t b = begin; b < end; ++b) {
      if (dweight) add(b, own);
      if (dbias) add_rows(s.positions(), s.out, dy + b * outputs, s.out, own + of_bias);
    }
  });
  add_parts(0, stride, chunks, stride, parts.data());
  const W *dtaps = parts.data(), *biases = dtaps + of_bias;
  for (int64_t o = 0; dweight && o < s.out; ++o)
    write_each(0, s.window(), dweight.data + o * s.window(), dweight.add,
               [=](int64_t k) { return dtaps[k * width + o]; });
  if (dbias) write_each(0, s.out, dbias.data, dbias.add, [=](int64_t o) { return biases[o]; });
}

// input_gradient() writes dx or adds to it.
template <class T> void input_gradient(const ConvSize& s, const T* dy, const T* weight, const Target<T>& dx) {
  if constexpr (std::is_same_v<T, bf16>)
    if (const Bf16Kernels* kernels = bf16_kernels();
        kernels && depthwise_input_gradient_bf16(*kernels, s, dy, weight, dx))
      return;
  if (DryRun::active()) return;
  const int64_t pixels = s.height * s.width * s.in, outputs = s.positions() * s.out;
  const auto taps = taps_first(s, weight);
  const std::vector<Wide<T>> zeros(static_cast<size_t>(s.out), Wide<T>(0));
  const TapPlan<T> plan{rows_of(s, true), columns_of(s, true), s.out};
  parallel_for(s.images, 1, [&](int64_t b, int64_t) {
    dx_of_image<T>(plan, s, dy + b * outputs, taps.data(), zeros.data(), {dx.data + b * pixels, dx.add});
  });
}

}  // namespace

template <class T>
void depthwise_forward(const ConvSize& s, const T* x, const T* weight, const T* bias, T* y,
                       const Finish& finish) {
  if constexpr (std::is_same_v<T, bf16>)
    if (const Bf16Kernels* kernels = bf16_kernels();
        kernels && depthwise_forward_bf16(*kernels, s, x, weight, bias, y, finish))
      return;
  if (DryRun::active()) return;  // it takes no pool memory
  const auto taps = taps_first(s, weight);
  std::vector<Wide<T>> start(static_cast<size_t>(s.out), Wide<T>(0));
  if (bias) std::copy_n(bias, s.out, start.data());
  const TapPlan<T> plan{rows_of(s), columns_of(s), s.out};
  parallel_for(s.images, 1, [&](int64_t b, int64_t) {
    const int64_t row = s.out_w * s.out, at = b * s.positions() * s.out;
    forward_image(plan, s, x + b * s.height * s.width * s.in, taps.data(), start.data(), y + at,
                  [&](int64_t i) {
                    if (finish) finish(at + i * row, at + (i + 1) * row);
                  });
  });
}

template <>
template <class T>
void DepthwiseConvKernels<Cpu>::forward(const ConvSize& s, const T* x, const T* weight, const T* bias, T* y) {
  depthwise_forward<T>(s, x, weight, bias, y, nullptr);
}

template <>
template <class T>
void DepthwiseConvKernels<Cpu>::backward(const ConvSize& s, const T* dy, const T* x, const T* weight,
                                         const LayerGradients<T>& gradients) {
  const auto& [dx, dweight, dbias] = gradients;
  const int64_t pixels = s.height * s.width * s.in, outputs = s.positions() * s.out;
  if (dx) input_gradient(s, dy, weight, dx);
  if (DryRun::active() || (!dweight && !dbias)) return;
  if constexpr (std::is_same_v<T, bf16>)
    if (const Bf16Kernels* kernels = bf16_kernels())
      if (const DepthwiseTapGradients taps(*kernels, s); taps)
        return filter_gradients(s, whole_bf16_panels(s.out), dy, dweight, dbias, [&](int64_t b, float* sums) {
          taps.add_image(dy + b * outputs, x + b * pixels, b + 1 == s.images, sums, whole_bf16_panels(s.out));
        });
  filter_gradients(s, s.out, dy, dweight, dbias, [&](int64_t b, Wide<T>* sums) {
    const T* image = repeated_channels(s, x + b * pixels);
    FilterGradient<T>{rows_of(s), columns_of(s), s.out, dy + b * outputs, image, sums}.add_image();
  });
}

TESSERA_FOR_FLOATS(depthwise_forward)
TESSERA_FOR_FLOATS(DepthwiseConvKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(DepthwiseConvKernels<Cpu>::backward)

}  // namespace tessera
