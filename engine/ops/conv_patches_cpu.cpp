#include "engine/ops/conv_patches.h"

#include "engine/core/dispatch.h"
#include "engine/core/made_of_weight.h"
#include "engine/core/parallel.h"
#include "engine/core/scratch.h"
#include "engine/cpu/each.h"
#include "engine/ops/linear_kernels.h"

namespace tessera {

namespace {

LinearSize linear_size(const ConvSize& s) { return {s.images * s.positions(), s.window() * s.in, s.out}; }

// Calls run(offset among windows, offset in the map) for every row of every window: `length` numbers that are
// contiguous in both. A window is (kernel_h, kernel_w, in) numbers.
template <class Run> void each_window_row(const ConvSize& s, int64_t length, Run run) {
  parallel_for(s.images * s.out_h, chunk_length(1), [=, &s](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = 0; j < s.out_w; ++j)
        for (int64_t u = 0; u < s.kernel_h; ++u)
          run(((i * s.out_w + j) * s.kernel_h + u) * length, ((i * s.kernel_h + u) * s.out_w + j) * length);
  });
}

// windows [images * positions, window * in]
template <class T> void copy_windows(const ConvSize& s, const T* x, T* windows) {
  const int64_t length = s.kernel_w * s.in;
  each_window_row(s, length, [=](int64_t to, int64_t from) { std::copy_n(x + from, length, windows + to); });
}

// Calls put(place in a window's order, place in the weight's) for all of [out, in, kernel_h, kernel_w].
template <class Put> void each_weight(const ConvSize& s, Put put) {
  const int64_t window = s.window();
  parallel_for(s.out, chunk_length(16), [=, &s](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o)
      for (int64_t k = 0; k < window; ++k)
        for (int64_t c = 0; c < s.in; ++c) put((o * window + k) * s.in + c, (o * s.in + c) * window + k);
  });
}

template <class T> void turn_weight(const ConvSize& s, const T* weight, T* turned) {
  each_weight(s, [=](int64_t to, int64_t from) { turned[to] = weight[from]; });
}

template <class T> T sum_of(const Target<T>& target, int64_t at, T value) {
  return target.add ? T(Wide<T>(target.data[at]) + Wide<T>(value)) : value;
}

}  // namespace

template <class T> void patches_forward(const ConvSize& s, const T* x, const T* weight, const T* bias, T* y) {
  const LinearSize size = linear_size(s);
  const Workspace<T> windows(size.rows * size.in);
  const MadeOfWeight<T> turned(weight, {"patches", s.weight_shape()}, size.out * size.in, [&](T* to) {
    if (!DryRun::active()) turn_weight(s, weight, to);
  });
  if (!DryRun::active()) copy_windows(s, x, windows.data());
  LinearKernels<Cpu>::forward<T>(size, windows.data(), turned.data(), bias, Activation::none, y, nullptr);
}

template <class T>
void patches_backward(const ConvSize& s, const T* dy, const T* x, const T* weight,
                      const LayerGradients<T>& gradients) {
  const LinearSize size = linear_size(s);
  const Target<T> dx = gradients.dx, dweight = gradients.dweight;
  const Workspace<T> windows(dweight ? size.rows * size.in : 0), turned(dx ? size.out * size.in : 0),
      dwindows(dx ? size.rows * size.in : 0), dturned(dweight ? size.out * size.in : 0);
  if (!DryRun::active()) {
    if (dweight) copy_windows(s, x, windows.data());
    if (dx) turn_weight(s, weight, turned.data());
  }
  const Target<T> none{};
  LinearKernels<Cpu>::backward<T>(
      size, Activation::none, dy, nullptr, windows.data(), turned.data(),
      {dx ? Target<T>{dwindows.data()} : none, dweight ? Target<T>{dturned.data()} : none, gradients.dbias});
  if (DryRun::active()) return;
  if (dx) {
    const int64_t length = s.kernel_w * s.in;
    each_window_row(s, length, [=, from = dwindows.data()](int64_t window, int64_t map) {
      write_each(0, length, dx.data + map, dx.add, [=](int64_t i) { return Wide<T>(from[window + i]); });
    });
  }
  if (dweight)
    each_weight(s, [=, from = dturned.data()](int64_t at, int64_t to) {
      dweight.data[to] = sum_of(dweight, to, from[at]);
    });
}

TESSERA_FOR_FLOATS(patches_forward)
TESSERA_FOR_FLOATS(patches_backward)

}  // namespace tessera
