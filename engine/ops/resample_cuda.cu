#include "engine/core/dispatch.h"
#include "engine/cuda/index.h"
#include "engine/cuda/launch.h"
#include "engine/ops/resample_kernels.h"

namespace tessera {

namespace {

// Calls f(output, tap) for every tap of the axis that reads `input`, in order.
template <class F> __device__ void each_reader(const FlatTaps& axis, int64_t input, const F& f) {
  for (int64_t i = 0; i < axis.outputs; ++i)
    for (int64_t u = axis.first[i]; u < axis.first[i + 1]; ++u)
      if (axis.from[u] == input) f(i, u);
}

}  // namespace

template <>
template <class T>
void ResampleKernels<Cuda>::forward(int64_t images, int64_t channels, const FlatTaps& vertical,
                                    const FlatTaps& horizontal, const T* x, T* y) {
  using W = Wide<T>;
  map(images * vertical.outputs * horizontal.outputs * channels, y, false, [=] __device__(int64_t at) {
    const int64_t c = split_off(at, channels), j = split_off(at, horizontal.outputs);
    const int64_t i = split_off(at, vertical.outputs);
    const T* image = x + at * vertical.inputs * horizontal.inputs * channels;
    W sum = 0;
    for (int64_t u = vertical.first[i]; u < vertical.first[i + 1]; ++u)
      for (int64_t v = horizontal.first[j]; v < horizontal.first[j + 1]; ++v) {
        const int64_t pixel = vertical.from[u] * horizontal.inputs + horizontal.from[v];
        sum += W(vertical.weight[u] * horizontal.weight[v]) * W(image[pixel * channels + c]);
      }
    return sum;
  });
}

template <>
template <class T>
void ResampleKernels<Cuda>::backward(int64_t images, int64_t channels, const FlatTaps& vertical,
                                     const FlatTaps& horizontal, const T* dy, Target<T> dx) {
  using W = Wide<T>;
  map(images * vertical.inputs * horizontal.inputs * channels, dx.data, dx.add, [=] __device__(int64_t at) {
    const int64_t c = split_off(at, channels), column = split_off(at, horizontal.inputs);
    const int64_t row = split_off(at, vertical.inputs);
    const T* image = dy + at * vertical.outputs * horizontal.outputs * channels;
    W sum = 0;
    each_reader(vertical, row, [&](int64_t i, int64_t u) {
      each_reader(horizontal, column, [&](int64_t j, int64_t v) {
        sum += W(vertical.weight[u] * horizontal.weight[v]) *
               W(image[(i * horizontal.outputs + j) * channels + c]);
      });
    });
    return sum;
  });
}

TESSERA_FOR_FLOATS(ResampleKernels<Cuda>::forward)
TESSERA_FOR_FLOATS(ResampleKernels<Cuda>::backward)

}  // namespace tessera
