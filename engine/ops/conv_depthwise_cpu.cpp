// The depthwise convolution: the channels are last, so every tap of a window is one loop over them.

#include <algorithm>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/cpu/each.h"
#include "engine/cpu/row_sums.h"
#include "engine/ops/conv_bf16.h"
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

// Calls f(k, pixel) for the taps of window (i, j) that lie inside the map; pixel = y * width + x.
template <class F> void each_tap_inside(const ConvSize& s, int64_t i, int64_t j, F f) {
  for (int64_t u = 0; u < s.kernel_h; ++u) {
    const int64_t y = i * s.stride + u - s.padding;
    if (y < 0 || y >= s.height) continue;
    for (int64_t v = 0; v < s.kernel_w; ++v) {
      const int64_t x = j * s.stride + v - s.padding;
      if (x >= 0 && x < s.width) f(u * s.kernel_w + v, y * s.width + x);
    }
  }
}

// Calls f(o, c) for every output channel o and the input channel c = o / m that it reads.
template <class F> void each_channel(const ConvSize& s, F f) {
  const int64_t m = s.out / s.in;
  if (m == 1) {
#pragma omp simd
    for (int64_t c = 0; c < s.in; ++c) f(c, c);
    return;
  }
  for (int64_t c = 0; c < s.in; ++c)
    for (int64_t r = 0; r < m; ++r) f(c * m + r, c);
}

// Where a tap that lies inside the map has its filters, [out], and the pixel that it reads, [in].
template <class T> struct Tap {
  const Wide<T>* filters;
  const T* pixel;
};

// The sums of n vectors of channels from `channel` on, which stay in registers over all taps. start [out],
// sums [out]
template <int n, class T>
void sum_vectors(const std::vector<Tap<T>>& taps, int64_t channel, const Wide<T>* start, Wide<T>* sums) {
  using W = Wide<T>;
  Vector<W> sum[n];
  for (int v = 0; v < n; ++v) sum[v] = load_vector(start + channel + v * lanes<W>);
  for (const Tap<T>& tap : taps)
    for (int v = 0; v < n; ++v) {
      const int64_t at = channel + v * lanes<W>;
      sum[v] += load_vector(tap.filters + at) * load_wide(tap.pixel + at);
    }
  for (int v = 0; v < n; ++v) store_vector(sums + channel + v * lanes<W>, sum[v]);
}

// The sums of a window with a filter a channel.
template <class T>
void sum_window(const std::vector<Tap<T>>& taps, int64_t channels, const Wide<T>* start, Wide<T>* sums) {
  using W = Wide<T>;
  constexpr int most = 4;
  int64_t c = 0;
  for (; c + most * lanes<W> <= channels; c += most * lanes<W>) sum_vectors<most, T>(taps, c, start, sums);
  for (; c + lanes<W> <= channels; c += lanes<W>) sum_vectors<1, T>(taps, c, start, sums);
  for (; c < channels; ++c) {
    sums[c] = start[c];
    for (const Tap<T>& tap : taps) sums[c] += tap.filters[c] * W(tap.pixel[c]);
  }
}

// done(i) is called for every row of windows that is written.
template <class T, class Done>
void forward_image(const ConvSize& s, const T* image, const Wide<T>* taps, const Wide<T>* start, T* y,
                   const Done& done) {
  using W = Wide<T>;
  std::vector<W> sums(static_cast<size_t>(s.out));
  std::vector<Tap<T>> inside;
  for (int64_t i = 0; i < s.out_h; ++i) {
    for (int64_t j = 0; j < s.out_w; ++j) {
      inside.clear();
      each_tap_inside(s, i, j, [&](int64_t k, int64_t pixel) {
        inside.push_back({taps + k * s.out, image + pixel * s.in});
      });
      W* sum = sums.data();
      if (s.out == s.in) {
        sum_window<T>(inside, s.out, start, sum);
      } else {
        std::copy_n(start, s.out, sum);
        for (const auto& [filters, pixel] : inside)
          each_channel(s, [=, filters = filters, pixel = pixel](int64_t o, int64_t c) {
            sum[o] += filters[o] * W(pixel[c]);
          });
      }
      write_each(0, s.out, y + (i * s.out_w + j) * s.out, false, [=](int64_t o) { return sum[o]; });
    }
    done(i);
  }
}

template <class T> void dx_of_image(const ConvSize& s, const T* dy, const Wide<T>* taps, bool add, T* dx) {
  using W = Wide<T>;
  const int64_t pixels = s.height * s.width * s.in;
  std::vector<W> sums(static_cast<size_t>(pixels), W(0));
  for (int64_t i = 0; i < s.out_h; ++i)
    for (int64_t j = 0; j < s.out_w; ++j) {
      const T* d = dy + (i * s.out_w + j) * s.out;
      each_tap_inside(s, i, j, [&](int64_t k, int64_t pixel) {
        W* to = sums.data() + pixel * s.in;
        const W* tap = taps + k * s.out;
        each_channel(s, [=](int64_t o, int64_t c) { to[c] += tap[o] * W(d[o]); });
      });
    }
  const W* sum = sums.data();
  for (int64_t i = 0; i < pixels; ++i) store(dx[i], add ? W(dx[i]) + sum[i] : sum[i]);
}

// Adds an image's part of the gradients of the taps [window, out] and the bias [out].
template <class T>
void sums_of_image(const ConvSize& s, const T* dy, const T* image, Wide<T>* dtaps, Wide<T>* dbias) {
  using W = Wide<T>;
  for (int64_t i = 0; i < s.out_h; ++i)
    for (int64_t j = 0; j < s.out_w; ++j) {
      const T* d = dy + (i * s.out_w + j) * s.out;
      each_tap_inside(s, i, j, [&](int64_t k, int64_t pixel) {
        const T* in = image + pixel * s.in;
        W* to = dtaps + k * s.out;
        each_channel(s, [=](int64_t o, int64_t c) { to[o] += W(d[o]) * W(in[c]); });
      });
      for (int64_t o = 0; o < s.out; ++o) dbias[o] += W(d[o]);
    }
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
  parallel_for(s.images, 1, [&](int64_t b, int64_t) {
    const int64_t row = s.out_w * s.out, at = b * s.positions() * s.out;
    forward_image(s, x + b * s.height * s.width * s.in, taps.data(), start.data(), y + at, [&](int64_t i) {
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
  if (DryRun::active()) return;
  using W = Wide<T>;
  const int64_t pixels = s.height * s.width * s.in, outputs = s.positions() * s.out;
  const auto taps = taps_first(s, weight);
  if (dx)
    parallel_for(s.images, 1, [&, dx = dx](int64_t b, int64_t) {  // clang 14 captures no structured binding
      dx_of_image(s, dy + b * outputs, taps.data(), dx.add, dx.data + b * pixels);
    });
  if (!dweight && !dbias) return;
  const int64_t grain = (s.images + 15) / 16, chunks = (s.images + grain - 1) / grain;
  const int64_t stride = (s.window() + 1) * s.out;
  std::vector<W> parts(static_cast<size_t>(chunks * stride), W(0));
  parallel_for(s.images, grain, [&](int64_t begin, int64_t end) {
    W* own = parts.data() + begin / grain * stride;
    for (int64_t b = begin; b < end; ++b)
      sums_of_image(s, dy + b * outputs, x + b * pixels, own, own + s.window() * s.out);
  });
  const auto total = [&](int64_t k, int64_t o, bool add, T& out) {
    W sum = add ? W(out) : W(0);
    for (int64_t p = 0; p < chunks; ++p) sum += parts[static_cast<size_t>(p * stride + k * s.out + o)];
    out = T(sum);
  };
  for (int64_t o = 0; o < s.out; ++o) {
    for (int64_t k = 0; dweight && k < s.window(); ++k)
      total(k, o, dweight.add, dweight.data[o * s.window() + k]);
    if (dbias) total(s.window(), o, dbias.add, dbias.data[o]);
  }
}

TESSERA_FOR_FLOATS(depthwise_forward)
TESSERA_FOR_FLOATS(DepthwiseConvKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(DepthwiseConvKernels<Cpu>::backward)

}  // namespace tessera
