// The convolution: windows are copied out into rows (an im2col of one chunk of images at a time, while it is
// in the cache), and BLAS multiplies them. Weights are turned to (kernel_h, kernel_w, in), the order of a
// window in memory.

#include <algorithm>
#include <vector>

#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/core/storage.h"
#include "engine/ops/conv_kernels.h"
#include "engine/ops/gemm.h"

namespace tessera {

namespace {

// Scratch of n elements that this thread keeps for its next call.
template <class T, int which> T* scratch(int64_t n) {
  thread_local std::vector<T> kept;
  if (kept.size() < static_cast<size_t>(n)) kept.resize(static_cast<size_t>(n));
  return kept.data();
}

// [out, in, window] -> [out, window, in], and back with `add`.
template <class From, class To> void channels_last(const ConvSize& s, const From* weight, To* turned) {
  for (int64_t o = 0; o < s.out; ++o)
    for (int64_t c = 0; c < s.in; ++c)
      for (int64_t k = 0; k < s.window(); ++k)
        turned[(o * s.window() + k) * s.in + c] = weight[(o * s.in + c) * s.window() + k];
}

// f(row, y, x, k): window row, its place y, x in the map, k of the window; for all of image rows [first,
// last) of windows that lie inside; outside(row, k) for the others.
template <class Inside, class Outside>
void each_tap(const ConvSize& s, int64_t first, int64_t last, Inside inside, Outside outside) {
  for (int64_t i = first; i < last; ++i)
    for (int64_t j = 0; j < s.out_w; ++j)
      for (int64_t u = 0; u < s.kernel_h; ++u)
        for (int64_t v = 0; v < s.kernel_w; ++v) {
          const int64_t y = i * s.stride + u - s.padding, x = j * s.stride + v - s.padding;
          const int64_t row = (i - first) * s.out_w + j, k = u * s.kernel_w + v;
          if (y >= 0 && y < s.height && x >= 0 && x < s.width)
            inside(row, y, x, k);
          else
            outside(row, k);
        }
}

// The windows of image rows [first, last) as rows (kernel_h, kernel_w, in).
template <class T> void windows(const ConvSize& s, const T* image, int64_t first, int64_t last, T* rows) {
  const int64_t length = s.window() * s.in;
  each_tap(
      s, first, last,
      [=, &s](int64_t row, int64_t y, int64_t x, int64_t k) {
        std::copy_n(image + (y * s.width + x) * s.in, s.in, rows + row * length + k * s.in);
      },
      [=, &s](int64_t row, int64_t k) { std::fill_n(rows + row * length + k * s.in, s.in, T(0.f)); });
}

// Output rows that are multiplied at a time: about 256 windows, so that BLAS is worth its packing.
int64_t rows_at_once(const ConvSize& s) { return std::clamp<int64_t>(256 / s.out_w, 1, s.out_h); }

// Images a chunk of a sum over images: at most 16 chunks.
int64_t images_a_chunk(const ConvSize& s) { return (s.images + 15) / 16; }

template <class T>
void forward_image(const ConvSize& s, const T* image, const T* turned, const T* bias, T* y) {
  const int64_t length = s.window() * s.in, step = rows_at_once(s);
  T* rows = scratch<T, 0>(step * s.out_w * length);
  for (int64_t i = 0; i < s.out_h; i += step) {
    const int64_t last = std::min(s.out_h, i + step), count = (last - i) * s.out_w;
    windows(s, image, i, last, rows);
    T* out = y + i * s.out_w * s.out;
    for (int64_t r = 0; bias && r < count; ++r) std::copy_n(bias, s.out, out + r * s.out);
    gemm(false, true, count, s.out, length, Wide<T>(1), rows, length, turned, length, Wide<T>(bias ? 1 : 0),
         out, s.out);
  }
}

template <class T> void dx_of_image(const ConvSize& s, const T* dy, const T* turned, T* dx) {
  using W = Wide<T>;
  const int64_t length = s.window() * s.in, step = rows_at_once(s);
  W* rows = scratch<W, 1>(step * s.out_w * length);
  W* sum = scratch<W, 2>(s.height * s.width * s.in);
  std::fill_n(sum, s.height * s.width * s.in, W(0));
  for (int64_t i = 0; i < s.out_h; i += step) {
    const int64_t last = std::min(s.out_h, i + step), count = (last - i) * s.out_w;
    gemm(false, false, count, length, s.out, W(1), dy + i * s.out_w * s.out, s.out, turned, length, W(0),
         rows, length);
    each_tap(
        s, i, last,
        [=, &s](int64_t row, int64_t y, int64_t x, int64_t k) {
          const W* from = rows + row * length + k * s.in;
          W* to = sum + (y * s.width + x) * s.in;
#pragma omp simd
          for (int64_t c = 0; c < s.in; ++c) to[c] += from[c];
        },
        [](int64_t, int64_t) {});
  }
  for (int64_t i = 0; i < s.height * s.width * s.in; ++i) dx[i] = T(W(dx[i]) + sum[i]);
}

// Adds an image's part of d weight (turned) and d bias.
template <class T>
void sums_of_image(const ConvSize& s, const T* dy, const T* image, Wide<T>* dturned, Wide<T>* dbias) {
  using W = Wide<T>;
  const int64_t length = s.window() * s.in, step = rows_at_once(s);
  T* rows = scratch<T, 0>(step * s.out_w * length);
  for (int64_t i = 0; i < s.out_h; i += step) {
    const int64_t last = std::min(s.out_h, i + step), count = (last - i) * s.out_w;
    windows(s, image, i, last, rows);
    gemm(true, false, s.out, length, count, W(1), dy + i * s.out_w * s.out, s.out, rows, length, W(1),
         dturned, length);
  }
  for (int64_t r = 0; r < s.positions(); ++r)
    for (int64_t o = 0; o < s.out; ++o) dbias[o] += W(dy[r * s.out + o]);
}

// out[i] (+)= the parts' sums in order, n of them, `stride` apart; at(i) is where the parts hold out[i].
template <class T, class At>
void total(int64_t n, int64_t parts, int64_t stride, const Wide<T>* part, At at, bool add, T* out) {
  if (!out) return;
  for (int64_t i = 0; i < n; ++i) {
    Wide<T> sum = add ? Wide<T>(out[i]) : Wide<T>(0);
    for (int64_t p = 0; p < parts; ++p) sum += part[p * stride + at(i)];
    out[i] = T(sum);
  }
}

template <class T> void clear_unless(bool add, int64_t n, T* out) {
  if (!add) std::fill_n(out, n, T(0.f));
}

}  // namespace

template <>
template <class T>
void ConvKernels<Cpu>::forward(const ConvSize& s, const T* x, const T* weight, const T* bias, T* y) {
  const Storage turned(Device::cpu, static_cast<size_t>(s.out * s.in * s.window()) * sizeof(T));
  if (DryRun::active()) return;
  channels_last(s, weight, static_cast<T*>(turned.data()));
  parallel_for(s.images, 1, [&](int64_t b, int64_t) {
    forward_image(s, x + b * s.height * s.width * s.in, static_cast<const T*>(turned.data()), bias,
                  y + b * s.positions() * s.out);
  });
}

template <>
template <class T>
void ConvKernels<Cpu>::backward(const ConvSize& s, const T* dy, const T* x, const T* weight, bool add_dx,
                                T* dx, bool add_dweight, T* dweight, bool add_dbias, T* dbias) {
  using W = Wide<T>;
  const int64_t weights = s.out * s.in * s.window(), pixels = s.height * s.width * s.in;
  if (dx && !DryRun::active()) {  // less than `parts` below, so that a dry run may leave it out
    const Storage turned(Device::cpu, static_cast<size_t>(weights) * sizeof(T));
    channels_last(s, weight, static_cast<T*>(turned.data()));
    parallel_for(s.images, 1, [&](int64_t b, int64_t) {
      clear_unless(add_dx, pixels, dx + b * pixels);
      dx_of_image(s, dy + b * s.positions() * s.out, static_cast<const T*>(turned.data()), dx + b * pixels);
    });
  }
  if (!dweight && !dbias) return;
  const int64_t grain = images_a_chunk(s), chunks = (s.images + grain - 1) / grain, stride = weights + s.out;
  const Storage parts(Device::cpu, static_cast<size_t>(chunks * stride) * sizeof(W));
  if (DryRun::active()) return;
  W* part = static_cast<W*>(parts.data());
  parallel_for(s.images, grain, [&](int64_t begin, int64_t end) {
    W* own = part + begin / grain * stride;
    std::fill_n(own, stride, W(0));
    for (int64_t b = begin; b < end; ++b)
      sums_of_image(s, dy + b * s.positions() * s.out, x + b * pixels, own, own + weights);
  });
  const auto turned_place = [&](int64_t i) {  // of weight i = (o, c, k) among (o, k, c)
    const int64_t k = i % s.window(), c = i / s.window() % s.in, o = i / s.window() / s.in;
    return (o * s.window() + k) * s.in + c;
  };
  total(weights, chunks, stride, part, turned_place, add_dweight, dweight);
  total(
      s.out, chunks, stride, part + weights, [](int64_t i) { return i; }, add_dbias, dbias);
}

TESSERA_FOR_FLOATS(ConvKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(ConvKernels<Cpu>::backward)

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
void UnfoldKernels<Cpu>::backward(const ConvSize& s, const T* dy, bool add_dx, T* dx) {
  const int64_t pixels = s.height * s.width * s.in;
  parallel_for(s.images, 1, [&](int64_t b, int64_t) {
    using W = Wide<T>;
    const T* rows = dy + b * s.positions() * s.in * s.window();
    W* sum = scratch<W, 2>(pixels);
    std::fill_n(sum, pixels, W(0));
    each_tap(
        s, 0, s.out_h,
        [&](int64_t row, int64_t i, int64_t j, int64_t k) {
          for (int64_t c = 0; c < s.in; ++c)
            sum[(i * s.width + j) * s.in + c] += W(rows[(row * s.in + c) * s.window() + k]);
        },
        [](int64_t, int64_t) {});
    T* image = dx + b * pixels;
    for (int64_t i = 0; i < pixels; ++i) image[i] = T(add_dx ? W(image[i]) + sum[i] : sum[i]);
  });
}

TESSERA_FOR_FLOATS(UnfoldKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(UnfoldKernels<Cpu>::backward)

}  // namespace tessera
