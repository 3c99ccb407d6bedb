#include "engine/ops/conv_bf16.h"

#include <array>
#include <optional>

#include "engine/core/made_of_weight.h"
#include "engine/core/parallel.h"
#include "engine/core/scratch.h"
#include "engine/cpu/bf16_panels.h"
#include "engine/cpu/each.h"
#include "engine/ops/conv_bands.h"
#include "engine/ops/conv_parts.h"
#include "engine/ops/conv_windows.h"

// The products of engine/cpu/bf16_gemm.h read the windows from bands of pixels (conv_bands.h), a row of the
// kernel after the other, and what is written is rounded once, from sums in float. As in conv_cpu.cpp, the
// gradient of x is itself a convolution where the stride is 1.

namespace tessera {

namespace {

constexpr int of_band = 20, of_left = 21, of_right = 22, of_sum = 23;  // keys of a thread's scratch memory
constexpr float one = 1;

int64_t row_length(const ConvSize& s) { return whole_bf16_vectors(s.window() * s.in); }
int64_t rows_at_once(const ConvSize& s) { return rows_at_once(s, row_length(s) * int64_t{sizeof(bf16)}); }

// Calls f(first row, last row, windows) for the image's rows of windows, some at a time.
template <class F> void for_rows(const ConvSize& s, F&& f) {
  const int64_t step = rows_at_once(s);
  for (int64_t i = 0; i < s.out_h; i += step) {
    const int64_t last = std::min(s.out_h, i + step);
    f(i, last, (last - i) * s.out_w);
  }
}

// A band of pixels in pairs.
BandSize pair_band(const ConvSize& s) { return BandSize(s, 2); }
const bf16* band(const ConvSize& s, const BandSize& size, const bf16* image, int64_t first, int64_t last) {
  return band<bf16, of_band>(s, size, image, first, last, rows_at_once(s));
}

// Prefetches the n numbers from here on, or one of `parts` parts of them, while the processor multiplies. The
// next band's copy reads them, and would wait for them otherwise.
void prefetch(const bf16* from, int64_t n, int64_t part = 0, int64_t parts = 1) {
  constexpr int64_t line = 32, second_cache = 2;
  for (int64_t i = n * part / parts; i < n * (part + 1) / parts; i += line)
    __builtin_prefetch(from + i, 0, second_cache);
}

// y = start + the product of some rows of windows, `across` of them a row, with a panel of the weight or,
// with `add`, += it. `pixels` is what the first window reads, `start` a row or null for zeros.
void multiply_windows(const Bf16Kernels& kernels, const ConvSize& s, const BandSize& size, int64_t rows,
                      int64_t across, int64_t columns, const bf16* pixels, const bf16* panel,
                      const float* start, bool add, bf16* y, float* block) {
  const int64_t pairs = s.kernel_h * size.across / 2;
  for (int64_t r = 0; r < rows; ++r)
    multiply_bf16_block(kernels, across, columns, pairs,
                        {pixels + r * s.stride * size.row, s.stride * size.channels, 2, s.kernel_h, size.row},
                        panel, {start, 0}, add, y + r * s.out_w * s.out, s.out, block);
}

// y = bias + the image's windows times B or, with `add`, += the product; bias may be null. done(first, last)
// is called for every row [first, last) of windows that is written.
template <class Done>
void convolve_image(const Bf16Kernels& kernels, const ConvSize& s, const bf16* image, const bf16* panels,
                    const float* bias, bool add, bf16* y, const Done& done) {
  alignas(64) Bf16Block block;
  const BandSize size = pair_band(s);
  const int64_t depth = s.kernel_h * size.across, across = std::min(s.out_w, bf16_block_rows);
  const int64_t together = bf16_block_rows / across;
  for_rows(s, [&](int64_t first, int64_t last, int64_t) {
    const bf16* pixels = band(s, size, image, first, last);
    for (int64_t i = first; i < last; i += together) {
      const int64_t row = s.stride * s.width * s.in;
      prefetch(image + (i + last - first) * row, together * row);
      for (int64_t x = 0; x < s.out_w; x += across)
        for (int64_t j = 0; j < s.out; j += bf16_panel) {
          const int64_t rows = std::min(together, last - i), windows = std::min(across, s.out_w - x),
                        columns = std::min(bf16_panel, s.out - j);
          bf16* to = y + (i * s.out_w + x) * s.out + j;
          for (int64_t r = 0; r < rows * windows; ++r) __builtin_prefetch(to + r * s.out, 1);
          multiply_windows(kernels, s, size, rows, windows, columns,
                           pixels + (i - first) * s.stride * size.row + x * s.stride * size.channels,
                           panels + j * depth, bias ? bias + j : nullptr, add, to, block.data());
        }
    }
    done(first, last);
  });
}

// The gradient of an image for any stride: each window's gradient is computed and scattered to its pixels.
void scatter_to_image(const Bf16Kernels& kernels, const ConvSize& s, const bf16* dy, const bf16* panels,
                      bool add, bf16* dx) {
  const int64_t length = row_length(s), pixels = s.height * s.width * s.in, pairs = pairs_of(s.out),
                n = s.window() * s.in;
  float* rows = thread_scratch<float, of_band>(rows_at_once(s) * s.out_w * length);
  float* sum = thread_scratch<float, of_sum>(pixels);
  std::fill_n(sum, pixels, 0.0f);
  for_rows(s, [&](int64_t first, int64_t last, int64_t count) {
    const LeftPairs left = left_factor<of_left>(kernels, count, s.out, {dy + first * s.out_w * s.out, s.out});
    for (int64_t j = 0; j < n; j += bf16_panel)
      kernels.multiply(count, whole_bf16_vectors(std::min(bf16_panel, n - j)), pairs, left,
                       {panels + j * 2 * pairs, 2 * bf16_panel}, 1, {nullptr, 0}, {rows + j, length});
    each_tap(
        s, first, last,
        [=, &s](int64_t row, int64_t y, int64_t x, int64_t k) {
          const float* from = rows + row * length + k * s.in;
          float* to = sum + (y * s.width + x) * s.in;
#pragma omp simd
          for (int64_t c = 0; c < s.in; ++c) to[c] += from[c];
        },
        [](int64_t, int64_t) {});
  });
  kernels.store(1, pixels, {sum, 0}, &one, 0, add, dx, 0);
}

// The sums of d weight: for each output the rows of the kernel one after the other, each in whole vectors.
int64_t sums_row(const BandSize& size) { return whole_bf16_vectors(size.across); }

// dy of some rows of windows, [windows, out], with a row of zeros after each odd number of windows.
const bf16* even_rows(const ConvSize& s, const bf16* dy, int64_t rows) {
  if (s.out_w % 2 == 0) return dy;
  const int64_t length = s.out_w * s.out;
  bf16* copy = thread_scratch<bf16, of_sum>(rows * (length + s.out));
  for (int64_t r = 0; r < rows; ++r, dy += length)
    clear(std::copy_n(dy, length, copy + r * (length + s.out)), s.out);
  return copy;
}

// The taps of a row of the kernel as right factors [windows of a row, across] in panels of 32 columns: the
// rows of pixels by their place in a stride, so that those of one row of the kernel follow one another in
// each panel.
void pack_rows(const Bf16Kernels& kernels, const ConvSize& s, const BandSize& size, const bf16* pixels,
               int64_t rows, int64_t phase, bf16* panels) {
  const int64_t all = band_rows(s, rows), length = pairs_of(s.out_w) * 2 * bf16_panel;
  for (int64_t y = 0; y < all; ++y)
    for (int64_t j = 0; j < size.across; j += bf16_panel)
      kernels.interleave(
          s.out_w, std::min(bf16_panel, size.across - j), pixels + y * size.row + j, s.stride * size.channels,
          panels + (j / bf16_panel * s.stride * phase + y % s.stride * phase + y / s.stride) * length,
          2 * bf16_panel);
}

// Adds an image's part of d weight, [out, kernel_h, sums_row], and of d bias, which may be null.
void sums_of_image(const Bf16Kernels& kernels, const ConvSize& s, const bf16* dy, const bf16* image,
                   float* dturned,  // NOLINT(readability-non-const-parameter): a FloatTarget writes it
                   float* dbias) {
  const BandSize size = pair_band(s);
  const int64_t row = sums_row(size), length = pairs_of(s.out_w) * 2 * bf16_panel,
                phase = (band_rows(s, rows_at_once(s)) + s.stride - 1) / s.stride,
                panels = (size.across + bf16_panel - 1) / bf16_panel, products = panels * s.kernel_h,
                x_row = s.stride * s.width * s.in, dy_row = s.out_w * s.out;
  bf16* packed = thread_scratch<bf16, of_right>(panels * s.stride * phase * length);
  for_rows(s, [&](int64_t first, int64_t last, int64_t) {
    pack_rows(kernels, s, size, band(s, size, image, first, last), last - first, phase, packed);
    const int64_t windows = (last - first) * 2 * pairs_of(s.out_w);
    const bf16* from = even_rows(s, dy + first * dy_row, last - first);
    const LeftPairs left = left_factor<of_left>(kernels, s.out, windows, {from, s.out, true});
    int64_t product = 0;
    for (int64_t j = 0; j < size.across; j += bf16_panel)
      for (int64_t u = 0; u < s.kernel_h; ++u, ++product) {
        prefetch(image + last * x_row, (last - first) * x_row, product, products);
        prefetch(dy + last * dy_row, (last - first) * dy_row, product, products);
        const int64_t at = (j / bf16_panel * s.stride + u % s.stride) * phase + u / s.stride;
        const FloatTarget to{dturned + u * row + j, s.kernel_h * row};
        kernels.multiply(s.out, whole_bf16_vectors(std::min(bf16_panel, size.across - j)), windows / 2, left,
                         {packed + at * length, 2 * bf16_panel}, 1, to, to);
      }
  });
  for (int64_t r = 0; dbias && r < s.positions(); ++r)
    write_each(0, s.out, dbias, true, [at = dy + r * s.out](int64_t o) { return float(at[o]); });
}

// The weight as a right factor [depth, n] in panels. Element place(o, c, k) of it, counted row by row, is
// weight[o, c, k], k the tap of the window; others are 0.
template <class Place>
MadeOfWeight<bf16> packed_weight(const Bf16Kernels& kernels, const ConvSize& s, const char* kind,
                                 int64_t depth, int64_t n, const bf16* weight, Place place) {
  return {weight, {kind, s.weight_shape()}, bf16_packed_elements(depth, n), [&](bf16* panels) {
            const Workspace<bf16> turned(depth * n);
            if (DryRun::active()) return;
            clear(turned.data(), depth * n);
            parallel_for(s.out, 1, [&](int64_t o, int64_t) {
              for (int64_t c = 0; c < s.in; ++c)
                for (int64_t k = 0; k < s.window(); ++k)
                  turned.data()[place(o, c, k)] = weight[(o * s.in + c) * s.window() + k];
            });
            pack_bf16_panels(kernels, depth, n, {turned.data(), n}, panels);
          }};
}

// The right factor of the windows that a band holds: its depth, and the place of a tap's weight among [depth,
// out].
int64_t windows_depth(const ConvSize& s) { return s.kernel_h * pair_band(s).across; }
int64_t place_in_windows(const ConvSize& s, int64_t o, int64_t c, int64_t k) {
  const BandSize size = pair_band(s);
  return (k / s.kernel_w * size.across + k % s.kernel_w * size.channels + c) * s.out + o;
}

// dx, image by image: where the stride is 1 it is a convolution of dy by the flipped weight, otherwise each
// window's gradient is scattered to its pixels.
class InputGradients {
 public:
  InputGradients(const Bf16Kernels& kernels, const ConvSize& s, const bf16* dy, const bf16* weight,
                 const Target<bf16>& dx)
      : kernels_(kernels),
        forward_(s),
        round_(turned_round(s)),
        turns_(turns_round(s)),
        weight_(turns_ ? turned_weight(weight) : weight_of_outputs(weight)),
        dy_(dy),
        dx_(dx) {}

  void image(int64_t b) const {
    const ConvSize& s = forward_;
    const bf16* dy = dy_ + b * s.positions() * s.out;
    bf16* dx = dx_.data + b * s.height * s.width * s.in;
    if (turns_)
      convolve_image(kernels_, round_, dy, weight_.data(), nullptr, dx_.add, dx, [](int64_t, int64_t) {});
    else
      scatter_to_image(kernels_, s, dy, weight_.data(), dx_.add, dx);
  }

 private:
  MadeOfWeight<bf16> turned_weight(const bf16* weight) const {
    return packed_weight(kernels_, forward_, "conv2d, dx", windows_depth(round_), round_.out, weight,
                         [this](int64_t o, int64_t c, int64_t k) {
                           return place_in_windows(round_, c, o, forward_.window() - 1 - k);
                         });
  }

  MadeOfWeight<bf16> weight_of_outputs(const bf16* weight) const {
    const ConvSize& s = forward_;
    return packed_weight(kernels_, s, "conv2d, dx of windows", s.out, s.window() * s.in, weight,
                         [&](int64_t o, int64_t c, int64_t k) { return (o * s.window() + k) * s.in + c; });
  }

  const Bf16Kernels& kernels_;
  ConvSize forward_, round_;  // sizes of the convolution and of the one that dx is
  bool turns_;                // whether dx is one (turns_round())
  MadeOfWeight<bf16> weight_;
  const bf16* dy_;
  Target<bf16> dx_;
};

}  // namespace

void conv_forward_bf16(const Bf16Kernels& kernels, const ConvSize& s, const bf16* x, const bf16* weight,
                       const bf16* bias, bf16* y, const Finish& finish) {
  const auto place = [&](int64_t o, int64_t c, int64_t k) { return place_in_windows(s, o, c, k); };
  const MadeOfWeight<bf16> packed =
      packed_weight(kernels, s, "conv2d", windows_depth(s), s.out, weight, place);
  const Workspace<float> start(bias ? whole_bf16_panels(s.out) : 0);
  if (DryRun::active()) return;
  if (bias) std::fill(std::copy_n(bias, s.out, start.data()), start.data() + whole_bf16_panels(s.out), 0.0f);
  parallel_for(s.images, 1, [&](int64_t b, int64_t) {
    const int64_t row = s.out_w * s.out, at = b * s.positions() * s.out;
    convolve_image(kernels, s, x + b * s.height * s.width * s.in, packed.data(),
                   bias ? start.data() : nullptr, false, y + at, [&](int64_t first, int64_t last) {
                     if (finish) finish(at + first * row, at + last * row);
                   });
  });
}

void conv_backward_bf16(const Bf16Kernels& kernels, const ConvSize& s, const bf16* dy, const bf16* x,
                        const bf16* weight, const LayerGradients<bf16>& gradients) {
  const Target<bf16> dx = gradients.dx, dweight = gradients.dweight, dbias = gradients.dbias;
  std::optional<InputGradients> inputs;
  if (dx) inputs.emplace(kernels, s, dy, weight, dx);
  const bool summed = dweight || dbias;
  const BandSize size = pair_band(s);
  const ConvSums sums(s, s.kernel_h * sums_row(size), sums_row(size), size.channels);
  const Workspace<float> parts(summed ? sums.elements() : 0);
  if (DryRun::active()) return;
  // Both gradients of an image follow one another, so that the second finds its dy in the cache.
  parallel_for(s.images, summed ? sums.grain : 1, [&](int64_t begin, int64_t end) {
    float* own = summed ? parts.data() + begin / sums.grain * sums.stride : nullptr;
    if (summed) std::fill_n(own, sums.stride, 0.0f);
    for (int64_t b = begin; b < end; ++b) {
      if (inputs) inputs->image(b);
      if (summed)
        sums_of_image(kernels, s, dy + b * s.positions() * s.out, x + b * s.height * s.width * s.in, own,
                      dbias ? own + s.out * sums.length : nullptr);
    }
  });
  if (summed) sums.total(s, parts.data(), dweight, dbias);
}

}  // namespace tessera
