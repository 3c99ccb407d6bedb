// The convolution by products in a type W that compilers have vectors of. A row of the kernel after the other
// multiplies the windows' numbers of that row, which are read from bands of pixels (conv_bands.h), by its
// part of the weight, packed once. With stride 1 the gradient of x is itself a convolution, of dy by the
// flipped weight.

#include <algorithm>

#include "engine/core/dispatch.h"
#include "engine/core/made_of_weight.h"
#include "engine/core/parallel.h"
#include "engine/core/scratch.h"
#include "engine/cpu/each.h"
#include "engine/cpu/panel_gemm.h"
#include "engine/ops/conv_bands.h"
#include "engine/ops/conv_bf16.h"
#include "engine/ops/conv_normed.h"
#include "engine/ops/conv_parts.h"
#include "engine/ops/conv_patches.h"
#include "engine/ops/conv_windows.h"
#include "engine/ops/conv_winograd.h"
#include "engine/ops/linear_parts.h"

namespace tessera {

namespace {

constexpr int of_band = 0, of_sum = 1, of_dy = 2, of_spread = 3;  // keys of a thread's scratch memory

// The length of a window, rounded up to whole vectors.
template <class W> int64_t row_length(const ConvSize& s) { return whole_vectors<W>(s.window() * s.in); }

template <class W> int64_t rows_at_once(const ConvSize& s) {
  return rows_at_once(s, row_length<W>(s) * static_cast<int64_t>(sizeof(W)));
}

// The weight as a matrix B [parts, depth, n], each part in panels. Element place(o, c, k) of B, counted row
// by row, is weight[o, c, k], k the tap of the window.
template <class T, class Place>
MadeOfWeight<Wide<T>> packed_weight(const ConvSize& s, const char* kind, int64_t parts, int64_t depth,
                                    int64_t n, const T* weight, Place place) {
  using W = Wide<T>;
  return {weight, {kind, s.weight_shape()}, parts * packed_elements<W>(depth, n), [&](W* panels) {
            const Workspace<W> turned(parts * depth * n);
            if (DryRun::active()) return;
            parallel_for(s.out, 1, [&](int64_t o, int64_t) {
              for (int64_t c = 0; c < s.in; ++c)
                for (int64_t k = 0; k < s.window(); ++k)
                  turned.data()[place(o, c, k)] = W(weight[(o * s.in + c) * s.window() + k]);
            });
            for (int64_t p = 0; p < parts; ++p)
              for (int64_t j = 0; j < n; j += panel_width<W>)
                pack_panel<W>(depth, n, {turned.data() + p * depth * n, n, 1}, j,
                              panels + p * packed_elements<W>(depth, n) + j * depth);
          }};
}

// The sums of some rows of windows, [rows, out_w, out], from `start` on; `pixels` is what the first window
// reads. A panel of a kernel row's weight stays in the first cache while all the windows pass.
template <class W>
void multiply_rows(const ConvSize& s, const BandSize& size, int64_t rows, const W* pixels, const W* panels,
                   Rows<const W> start, Rows<W> y) {
  const int64_t part = packed_elements<W>(size.across, s.out);
  const auto from_column = [&](const auto& sums, int64_t r, int64_t j) {
    return sums.data ? sums.data + r * s.out_w * sums.row + j : nullptr;
  };
  for (int64_t j = 0; j < s.out; j += panel_width<W>)
    for (int64_t u = 0; u < s.kernel_h; ++u)
      for (int64_t r = 0; r < rows; ++r) {
        const Rows<W> to{from_column(y, r, j), y.row};
        const Rows<const W> before = u > 0 ? to : Rows<const W>{from_column(start, r, j), start.row};
        panel_gemm<W>(s.out_w, std::min(panel_width<W>, s.out - j), size.across,
                      {pixels + (r * s.stride + u) * size.row, s.stride * size.channels, 1},
                      panels + u * part + j * size.across, before, to);
      }
}

// y = bias + the image's windows times B or, with `add`, += the product; bias may be null. done(first, last)
// is called for every row [first, last) of windows that is written.
template <class T, class Done>
void convolve_image(const ConvSize& s, const T* image, const Wide<T>* panels, const Wide<T>* bias, bool add,
                    T* y, const Done& done) {
  using W = Wide<T>;
  constexpr bool own = std::is_same_v<T, W>;
  const BandSize size(s, 1, !own);
  const int64_t step = rows_at_once<W>(s), length = s.out_w * s.out;
  for (int64_t i = 0; i < s.out_h; i += step) {
    const int64_t last = std::min(s.out_h, i + step), count = (last - i) * length;
    const W* pixels = band<W, of_band>(s, size, image, i, last, step);
    T* to = y + i * length;
    W* product;
    if constexpr (own)
      product = to;
    else
      product = thread_scratch<W, of_sum>(step * length);
    const Rows<const W> start = own && add ? Rows<const W>{product, s.out} : Rows<const W>{bias, 0};
    multiply_rows<W>(s, size, last - i, pixels, panels, start, {product, s.out});
    if constexpr (!own) write_each(0, count, to, add, [=](int64_t k) { return product[k]; });
    done(i, last);
  }
}

// The gradient of an image for any stride: each window's gradient is computed and scattered to its pixels.
template <class T>
void scatter_to_image(const ConvSize& s, const Wide<T>* dy, const Wide<T>* panels, bool add, T* dx) {
  using W = Wide<T>;
  const int64_t length = row_length<W>(s), step = rows_at_once<W>(s), pixels = s.height * s.width * s.in;
  W* rows = thread_scratch<W, of_band>(step * s.out_w * length);
  W* sum = thread_scratch<W, of_sum>(pixels);
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

// The sums of d weight: for each output the rows of the kernel one after the other, each in whole vectors.
template <class W> int64_t sums_row(const ConvSize& s) { return whole_vectors<W>(s.kernel_w * s.in); }

// dy of some rows of windows, [rows, out_w + gap, out], zeros in the gaps.
template <class W> const W* spread_rows(const ConvSize& s, const W* dy, int64_t rows, int64_t gap) {
  if (gap == 0) return dy;
  const int64_t length = s.out_w * s.out, zeros = gap * s.out;
  W* copy = thread_scratch<W, of_spread>(rows * (length + zeros));
  for (int64_t r = 0; r < rows; ++r, dy += length)
    std::fill_n(std::copy_n(dy, length, copy + r * (length + zeros)), zeros, W(0));
  return copy;
}

// Copies the windows of some rows, each as kernel_h rows of whole vectors. to [rows * out_w, kernel_h,
// sums_row]
template <class W>
void copy_windows(const ConvSize& s, const BandSize& size, int64_t rows, const W* pixels, W* to) {
  const int64_t row = sums_row<W>(s);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t x = 0; x < s.out_w; ++x)
      for (int64_t u = 0; u < s.kernel_h; ++u, to += row) {
        const W* from = pixels + (r * s.stride + u) * size.row + x * s.stride * size.channels;
        for (int64_t k = 0; k < row; k += lanes<W>) store_vector(to + k, load_vector(from + k));
      }
}

// Adds dy^T [out, windows] times the windows to d weight, [out, kernel_h, sums_row]. Row u of a window begins
// u * part numbers after `first`, and those of the next window `step` numbers further on.
template <class W>
void add_products(const ConvSize& s, int64_t windows, const W* dy, const W* first, int64_t part, int64_t step,
                  W* dturned) {
  constexpr int64_t columns = 4 * lanes<W>;  // narrow enough that they stay in the first cache
  const int64_t row = sums_row<W>(s);
  for (int64_t u = 0; u < s.kernel_h; ++u)
    for (int64_t j = 0; j < row; j += columns) {
      const Rows<W> to{dturned + u * row + j, s.kernel_h * row};
      small_gemm<W>(s.out, std::min(columns, row - j), windows, {dy, 1, s.out}, {first + u * part + j, step},
                    to, to);
    }
}

// Adds an image's part of d weight and of d bias, which may be null. With stride 1 the windows of several
// rows follow one another in the band, with those between them that lie across its edges; their dy is zero.
// Others overlap little, and are copied.
template <class T>
void sums_of_image(const ConvSize& s, const Wide<T>* dy, const T* image, Wide<T>* dturned, Wide<T>* dbias) {
  using W = Wide<T>;
  const BandSize size(s, 1, true);
  const int64_t step = rows_at_once<W>(s), length = s.out_w * s.out, gap = s.kernel_w - 1,
                row = sums_row<W>(s), window = s.kernel_h * row;
  for (int64_t i = 0; i < s.out_h; i += step) {
    const int64_t last = std::min(s.out_h, i + step), rows = last - i;
    const W *pixels = band<W, of_band>(s, size, image, i, last, step), *from = dy + i * length;
    if (s.stride == 1) {
      add_products<W>(s, rows * (s.out_w + gap) - gap, spread_rows(s, from, rows, gap), pixels, size.row,
                      size.channels, dturned);
      continue;
    }
    W* windows = thread_scratch<W, of_sum>(step * s.out_w * window);
    copy_windows<W>(s, size, rows, pixels, windows);
    add_products<W>(s, rows * s.out_w, from, windows, row, window, dturned);
  }
  for (int64_t r = 0; dbias && r < s.positions(); ++r)
    write_each(0, s.out, dbias, true, [row = dy + r * s.out](int64_t o) { return row[o]; });
}

template <class T> void input_gradient(const ConvSize& s, const T* dy, const T* weight, const Target<T>& dx) {
  const bool turns = turns_round(s);
  const int64_t pixels = s.height * s.width * s.in, outputs = s.positions() * s.out;
  const auto place = [=](int64_t o, int64_t c, int64_t k) {
    return turns ? ((s.window() - 1 - k) * s.out + o) * s.in + c : (o * s.window() + k) * s.in + c;
  };
  const MadeOfWeight<Wide<T>> packed =
      turns ? packed_weight(s, "conv2d, dx", s.kernel_h, s.kernel_w * s.out, s.in, weight, place)
            : packed_weight(s, "conv2d, dx of windows", 1, s.out, s.window() * s.in, weight, place);
  if (DryRun::active()) return;
  const ConvSize round = turns ? turned_round(s) : s;
  parallel_for(s.images, 1, [&](int64_t b, int64_t) {
    const T* from = dy + b * outputs;
    T* to = dx.data + b * pixels;
    if (turns)
      convolve_image<T>(round, from, packed.data(), nullptr, dx.add, to, [](int64_t, int64_t) {});
    else
      scatter_to_image<T>(s, wide_copy<of_dy>(from, outputs), packed.data(), dx.add, to);
  });
}

}  // namespace

template <class T>
void conv_forward(const ConvSize& s, const T* x, const T* weight, const T* bias, T* y, const Finish& finish) {
  using W = Wide<T>;
  if (s.of_pixels())
    return linear_forward<T>({s.images * s.positions(), s.in, s.out}, x, weight, bias, Activation::none, y,
                             nullptr, finish);
  if (tiles_map(s)) {
    check(!finish, "conv2d: an output that tiles the map is not finished in parts");
    return patches_forward(s, x, weight, bias, y);
  }
  if constexpr (std::is_same_v<T, W>)
    if (by_winograd(s)) return winograd_forward(s, x, weight, bias, y, finish);
  if constexpr (std::is_same_v<T, bf16>)
    if (const Bf16Kernels* kernels = bf16_kernels())
      return conv_forward_bf16(*kernels, s, x, weight, bias, y, finish);
  const MadeOfWeight<W> packed =
      packed_weight(s, "conv2d", s.kernel_h, s.kernel_w * s.in, s.out, weight,
                    [&](int64_t o, int64_t c, int64_t k) { return (k * s.in + c) * s.out + o; });
  const Workspace<W> start(bias ? s.out : 0);
  if (DryRun::active()) return;
  if (bias) std::copy_n(bias, s.out, start.data());
  parallel_for(s.images, 1, [&](int64_t b, int64_t) {
    const int64_t row = s.out_w * s.out, at = b * s.positions() * s.out;
    convolve_image(s, x + b * s.height * s.width * s.in, packed.data(), bias ? start.data() : nullptr, false,
                   y + at, [&](int64_t first, int64_t last) {
                     if (finish) finish(at + first * row, at + last * row);
                   });
  });
}

template <>
template <class T>
void ConvKernels<Cpu>::forward(const ConvSize& s, const T* x, const T* weight, const T* bias, T* y) {
  conv_forward<T>(s, x, weight, bias, y, nullptr);
}

template <>
template <class T>
void ConvKernels<Cpu>::backward(const ConvSize& s, const T* dy, const T* x, const T* weight,
                                const LayerGradients<T>& gradients) {
  if (tiles_map(s)) return patches_backward(s, dy, x, weight, gradients);
  const auto& [dx, dweight, dbias] = gradients;
  using W = Wide<T>;
  if constexpr (std::is_same_v<T, W>)
    if (by_winograd(s)) return winograd_backward(s, dy, x, weight, gradients);
  if constexpr (std::is_same_v<T, bf16>)
    if (const Bf16Kernels* kernels = bf16_kernels())
      return conv_backward_bf16(*kernels, s, dy, x, weight, gradients);
  if (dx) input_gradient(s, dy, weight, dx);
  if (!dweight && !dbias) return;
  const ConvSums sums(s, s.kernel_h * sums_row<W>(s), sums_row<W>(s), s.in);
  const Workspace<W> parts(sums.elements());
  if (DryRun::active()) return;
  const bool biased = bool(dbias);  // clang 14 captures no structured binding
  sums.of_images(s, parts.data(), [&](int64_t b, W* own, W* own_bias) {
    sums_of_image(s, wide_copy<of_dy>(dy + b * s.positions() * s.out, s.positions() * s.out),
                  x + b * s.height * s.width * s.in, own, biased ? own_bias : nullptr);
  });
  sums.total(s, parts.data(), dweight, dbias);
}

TESSERA_FOR_FLOATS(conv_forward)
TESSERA_FOR_FLOATS(ConvKernels<Cpu>::forward)
TESSERA_FOR_FLOATS(ConvKernels<Cpu>::backward)

}  // namespace tessera
