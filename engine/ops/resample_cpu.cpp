#include <algorithm>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/ops/resample_kernels.h"

namespace tessera {

namespace {

// Calls f(output pixel, input pixel, weight) for every pair of taps of an image.
template <class F> void each_pair(const FlatTaps& vertical, const FlatTaps& horizontal, F f) {
  for (int64_t i = 0; i < vertical.outputs; ++i)
    for (int64_t j = 0; j < horizontal.outputs; ++j)
      for (int64_t u = vertical.first[i]; u < vertical.first[i + 1]; ++u)
        for (int64_t v = horizontal.first[j]; v < horizontal.first[j + 1]; ++v)
          f(i * horizontal.outputs + j, vertical.from[u] * horizontal.inputs + horizontal.from[v],
            vertical.weight[u] * horizontal.weight[v]);
}

// to += weight * from, for all channels.
template <class From, class W> void add_weighed(W* to, const From* from, W weight, int64_t channels) {
#pragma omp simd
  for (int64_t c = 0; c < channels; ++c) to[c] += weight * W(from[c]);
}

}  // namespace

template <>
template <class T>
void ResampleKernels<Cpu>::forward(int64_t images, int64_t channels, const FlatTaps& vertical,
                                   const FlatTaps& horizontal, const T* x, T* y) {
  using W = Wide<T>;
  const int64_t in = vertical.inputs * horizontal.inputs * channels;
  const int64_t out = vertical.outputs * horizontal.outputs * channels;
  parallel_for(images, 1, [=](int64_t b, int64_t) {
    std::vector<W> sums(static_cast<size_t>(out), W(0));
    each_pair(vertical, horizontal, [&](int64_t to, int64_t from, double weight) {
      add_weighed(sums.data() + to * channels, x + b * in + from * channels, W(weight), channels);
    });
    for (int64_t i = 0; i < out; ++i) y[b * out + i] = T(sums[static_cast<size_t>(i)]);
  });
}

template <>
template <class T>
void ResampleKernels<Cpu>::backward(int64_t images, int64_t channels, const FlatTaps& vertical,
                                    const FlatTaps& horizontal, const T* dy, Target<T> dx) {
  using W = Wide<T>;
  const int64_t in = vertical.inputs * horizontal.inputs * channels;
  const int64_t out = vertical.outputs * horizontal.outputs * channels;
  parallel_for(images, 1, [=](int64_t b, int64_t) {
    std::vector<W> sums(static_cast<size_t>(in), W(0));
    each_pair(vertical, horizontal, [&](int64_t to, int64_t from, double weight) {
      add_weighed(sums.data() + from * channels, dy + b * out + to * channels, W(weight), channels);
    });
    T* image = dx.data + b * in;
    for (int64_t i = 0; i < in; ++i) {
      const W sum = sums[static_cast<size_t>(i)];
      image[i] = T(dx.add ? W(image[i]) + sum : sum);
    }
  });
}

TESSERA_FOR_FLOATS(ResampleKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(ResampleKernels<Cpu>::backward)

}  // namespace tessera
