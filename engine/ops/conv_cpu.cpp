// The convolution: windows are copied into rows (im2col, for so many rows of an image that they stay in the
// second cache) and multiplied by the weight, which is packed once in the order of a window in memory,
// (kernel_h, kernel_w, in). With stride 1 the gradient of x is itself a convolution, of dy by the flipped
// weight.

#include <algorithm>

#include "engine/core/dispatch.h"
#include "engine/core/parallel.h"
#include "engine/core/scratch.h"
#include "engine/cpu/each.h"
#include "engine/cpu/panel_gemm.h"
#include "engine/ops/conv_bf16.h"
#include "engine/ops/conv_parts.h"
#include "engine/ops/conv_windows.h"

namespace tessera {

namespace {

// The length of a window's row, rounded up to whole vectors.
template <class W> int64_t row_length(const ConvSize& s) { return whole_vectors<W>(s.window() * s.in); }

template <class W> int64_t rows_at_once(const ConvSize& s) {
  return rows_at_once(s, row_length<W>(s) * static_cast<int64_t>(sizeof(W)));
}

// y = bias + the image's windows times B or, with `add`, += the product; bias may be null.
template <class T>
void convolve_image(const ConvSize& s, const T* image, const Wide<T>* panels, const Wide<T>* bias, bool add,
                    T* y) {
  using W = Wide<T>;
  constexpr bool own = std::is_same_v<T, W>;
  const int64_t length = row_length<W>(s), depth = s.window() * s.in, step = rows_at_once<W>(s);
  W* rows = thread_scratch<W, 0>(step * s.out_w * length);
  for (int64_t i = 0; i < s.out_h; i += step) {
    const int64_t last = std::min(s.out_h, i + step), count = (last - i) * s.out_w;
    copy_windows(s, image, i, last, length, rows);
    T* to = y + i * s.out_w * s.out;
    W* product;
    if constexpr (own)
      product = to;
    else
      product = thread_scratch<W, 1>(count * s.out);
    const Rows<const W> start = own && add ? Rows<const W>{product, s.out} : Rows<const W>{bias, 0};
    panel_gemm<W>(count, s.out, depth, {rows, length, 1}, panels, start, {product, s.out});
    if constexpr (!own) write_each(0, count * s.out, to, add, [=](int64_t k) { return product[k]; });
  }
}

// The gradient of an image for any stride: each window's gradient is computed and scattered to its pixels.
template <class T>
void scatter_to_image(const ConvSize& s, const Wide<T>* dy, const Wide<T>* panels, bool add, T* dx) {
  using W = Wide<T>;
  const int64_t length = row_length<W>(s), step = rows_at_once<W>(s), pixels = s.height * s.width * s.in;
  W* rows = thread_scratch<W, 0>(step * s.out_w * length);
  W* sum = thread_scratch<W, 1>(pixels);
  std::fill_n(sum, pixels, W(0));
  for (int64_t i = 0; i < s.out_h; i += step) {
    const int64_t last = std::min(s.out_h, i + step), count = (last - i) * s.out_w;
    panel_gemm<W>(count, s.window() * s.in, s.out, {dy + i * s.out_w * s.out, s.out, 1}, panels, {nullptr, 0},
                  {rows, length});
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
  write_each(0, pixels, dx, add, [=](int64_t k) { return sum[k]; });
}

// Adds an image's part of d weight, [out, length] of windows' rows, and of d bias.
template <class T>
void sums_of_image(const ConvSize& s, const Wide<T>* dy, const T* image, Wide<T>* dturned, Wide<T>* dbias) {
  using W = Wide<T>;
  constexpr int64_t columns = 4 * lanes<W>;
  const int64_t length = row_length<W>(s), step = rows_at_once<W>(s);
  W* rows = thread_scratch<W, 0>(step * s.out_w * length);
  for (int64_t i = 0; i < s.out_h; i += step) {
    const int64_t last = std::min(s.out_h, i + step), count = (last - i) * s.out_w;
    copy_windows(s, image, i, last, length, rows);
    const W* from = dy + i * s.out_w * s.out;
    for (int64_t j = 0; j < length; j += columns)  // narrow enough that they stay in the first cache
      small_gemm<W>(s.out, std::min(columns, length - j), count, {from, 1, s.out}, {rows + j, length},
                    {dturned + j, length}, {dturned + j, length});
  }
  for (int64_t r = 0; r < s.positions(); ++r)
    write_each(0, s.out, dbias, true, [row = dy + r * s.out](int64_t o) { return row[o]; });
}

// The weight as a matrix B [depth, n] in panels.
template <class T> class PackedWeight {
 public:
  using W = Wide<T>;

  PackedWeight(int64_t depth, int64_t n)
      : depth_(depth), n_(n), turned_(depth * n), panels_(packed_elements<W>(depth, n)) {}

  // Element place(o, c, k) of B, counted row by row, is weight[o, c, k], k the tap of the window.
  template <class Place> void pack(const ConvSize& s, const T* weight, Place place) const {
    for (int64_t o = 0; o < s.out; ++o)
      for (int64_t c = 0; c < s.in; ++c)
        for (int64_t k = 0; k < s.window(); ++k)
          turned_.data()[place(o, c, k)] = W(weight[(o * s.in + c) * s.window() + k]);
    for (int64_t j = 0; j < n_; j += panel_width<W>)
      pack_panel<W>(depth_, n_, {turned_.data(), n_, 1}, j, panels_.data() + j * depth_);
  }

  const W* panels() const { return panels_.data(); }

 private:
  int64_t depth_, n_;
  Workspace<W> turned_, panels_;
};

template <class T> void input_gradient(const ConvSize& s, const T* dy, const T* weight, const Target<T>& dx) {
  const bool turns = turns_round(s);
  const int64_t pixels = s.height * s.width * s.in, outputs = s.positions() * s.out;
  const PackedWeight<T> packed(turns ? s.window() * s.out : s.out, turns ? s.in : s.window() * s.in);
  if (DryRun::active()) return;
  packed.pack(s, weight, [=](int64_t o, int64_t c, int64_t k) {
    return turns ? ((s.window() - 1 - k) * s.out + o) * s.in + c : (o * s.window() + k) * s.in + c;
  });
  const ConvSize round = turns ? turned_round(s) : s;
  parallel_for(s.images, 1, [&](int64_t b, int64_t) {
    const T* from = dy + b * outputs;
    T* to = dx.data + b * pixels;
    if (turns)
      convolve_image<T>(round, from, packed.panels(), nullptr, dx.add, to);
    else
      scatter_to_image<T>(s, wide_copy<2>(from, outputs), packed.panels(), dx.add, to);
  });
}

}  // namespace

template <>
template <class T>
void ConvKernels<Cpu>::forward(const ConvSize& s, const T* x, const T* weight, const T* bias, T* y) {
  using W = Wide<T>;
  if constexpr (std::is_same_v<T, bf16>)
    if (const Bf16Kernels* kernels = bf16_kernels())
      return conv_forward_bf16(*kernels, s, x, weight, bias, y);
  const PackedWeight<T> packed(s.window() * s.in, s.out);
  const Workspace<W> start(bias ? s.out : 0);
  if (DryRun::active()) return;
  packed.pack(s, weight, [=](int64_t o, int64_t c, int64_t k) { return (k * s.in + c) * s.out + o; });
  if (bias) std::copy_n(bias, s.out, start.data());
  parallel_for(s.images, 1, [&](int64_t b, int64_t) {
    convolve_image(s, x + b * s.height * s.width * s.in, packed.panels(), bias ? start.data() : nullptr,
                   false, y + b * s.positions() * s.out);
  });
}

template <>
template <class T>
void ConvKernels<Cpu>::backward(const ConvSize& s, const T* dy, const T* x, const T* weight,
                                const LayerGradients<T>& gradients) {
  const auto& [dx, dweight, dbias] = gradients;
  using W = Wide<T>;
  if constexpr (std::is_same_v<T, bf16>)
    if (const Bf16Kernels* kernels = bf16_kernels())
      return conv_backward_bf16(*kernels, s, dy, x, weight, gradients);
  if (dx) input_gradient(s, dy, weight, dx);
  if (!dweight && !dbias) return;
  const ConvSums sums(s, row_length<W>(s));
  const Workspace<W> parts(sums.elements());
  if (DryRun::active()) return;
  parallel_for(s.images, sums.grain, [&](int64_t begin, int64_t end) {
    W* own = parts.data() + begin / sums.grain * sums.stride;
    std::fill_n(own, sums.stride, W(0));
    for (int64_t b = begin; b < end; ++b)
      sums_of_image(s, wide_copy<2>(dy + b * s.positions() * s.out, s.positions() * s.out),
                    x + b * s.height * s.width * s.in, own, own + s.out * sums.length);
  });
  sums.total(s, parts.data(), dweight, dbias);
}

TESSERA_FOR_FLOATS(ConvKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(ConvKernels<Cpu>::backward)

}  // namespace tessera
