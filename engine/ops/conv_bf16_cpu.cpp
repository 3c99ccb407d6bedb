#include "engine/ops/conv_bf16.h"

#include <array>
#include <optional>

#include "engine/core/made_of_weight.h"
#include "engine/core/parallel.h"
#include "engine/core/scratch.h"
#include "engine/cpu/bf16_panels.h"
#include "engine/cpu/each.h"
#include "engine/ops/conv_bf16_bands.h"
#include "engine/ops/conv_bf16_sums.h"
#include "engine/ops/conv_parts.h"
#include "engine/ops/conv_windows.h"
#include "engine/ops/conv_winograd_bf16.h"

// The products of engine/cpu/bf16_gemm.h read the windows from bands of pixels (conv_bands.h), a row of the
// kernel after the other, and what is written is rounded once, from sums in float. As in conv_cpu.cpp, the
// gradient of x is itself a convolution where the stride is 1. Both go by minimal filtering where that serves
// (conv_winograd_bf16.h).

namespace tessera {

namespace {

constexpr int of_rows = 20, of_left = 21, of_sum = 23;  // keys of a thread's scratch memory
constexpr float one = 1;

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
  for_bf16_rows(s, [&](int64_t first, int64_t last, int64_t) {
    const bf16* pixels = pairs_of_band(s, size, image, first, last);
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
  const int64_t length = bf16_row_length(s), pixels = s.height * s.width * s.in, pairs = pairs_of(s.out),
                n = s.window() * s.in;
  float* rows = thread_scratch<float, of_rows>(bf16_rows_at_once(s) * s.out_w * length);
  float* sum = thread_scratch<float, of_sum>(pixels);
  std::fill_n(sum, pixels, 0.0f);
  for_bf16_rows(s, [&](int64_t first, int64_t last, int64_t count) {
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

// dx, image by image: where the stride is 1 it is a convolution of dy by the flipped weight, by minimal
// filtering where that serves; otherwise each window's gradient is scattered to its pixels.
class InputGradients {
 public:
  InputGradients(const Bf16Kernels& kernels, const ConvSize& s, const bf16* dy, const bf16* weight,
                 const Target<bf16>& dx)
      : kernels_(kernels), forward_(s), round_(turned_round(s)), turns_(turns_round(s)), dy_(dy), dx_(dx) {
    if (turns_ && by_winograd(kernels, round_))
      at_points_.emplace(kernels, s, weight, true);
    else
      weight_.emplace(turns_ ? turned_weight(weight) : weight_of_outputs(weight));
  }

  void image(int64_t b) const {
    const ConvSize& s = forward_;
    const bf16* dy = dy_ + b * s.positions() * s.out;
    bf16* dx = dx_.data + b * s.height * s.width * s.in;
    if (at_points_)
      at_points_->image(dy, nullptr, dx_.add, dx, nullptr);
    else if (turns_)
      convolve_image(kernels_, round_, dy, weight_->data(), nullptr, dx_.add, dx, [](int64_t, int64_t) {});
    else
      scatter_to_image(kernels_, s, dy, weight_->data(), dx_.add, dx);
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
  std::optional<ConvAtPoints> at_points_;
  std::optional<MadeOfWeight<bf16>> weight_;  // unless at_points_ has it
  const bf16* dy_;
  Target<bf16> dx_;
};

// Calls convolve(image, start, outputs, done) for every image: `start` is the bias in float, in whole panels,
// or null; done(first, last) is called for the rows [first, last) of outputs when they are written.
template <class Convolve>
void convolve_images(const ConvSize& s, const bf16* x, const bf16* bias, bf16* y, const Finish& finish,
                     const Convolve& convolve) {
  const Workspace<float> start(bias ? whole_bf16_panels(s.out) : 0);
  if (DryRun::active()) return;
  if (bias) std::fill(std::copy_n(bias, s.out, start.data()), start.data() + whole_bf16_panels(s.out), 0.0f);
  parallel_for(s.images, 1, [&](int64_t b, int64_t) {
    const int64_t row = s.out_w * s.out, at = b * s.positions() * s.out;
    convolve(x + b * s.height * s.width * s.in, bias ? start.data() : nullptr, y + at,
             [&](int64_t first, int64_t last) {
               if (finish) finish(at + first * row, at + last * row);
             });
  });
}

void forward_at_points(const Bf16Kernels& kernels, const ConvSize& s, const bf16* x, const bf16* weight,
                       const bf16* bias, bf16* y, const Finish& finish) {
  const ConvAtPoints at_points(kernels, s, weight, false);
  convolve_images(s, x, bias, y, finish,
                  [&](const bf16* image, const float* start, bf16* to, const auto& done) {
                    at_points.image(image, start, false, to, done);
                  });
}

}  // namespace

void conv_forward_bf16(const Bf16Kernels& kernels, const ConvSize& s, const bf16* x, const bf16* weight,
                       const bf16* bias, bf16* y, const Finish& finish) {
  if (by_winograd(kernels, s)) return forward_at_points(kernels, s, x, weight, bias, y, finish);
  const auto place = [&](int64_t o, int64_t c, int64_t k) { return place_in_windows(s, o, c, k); };
  const MadeOfWeight<bf16> packed =
      packed_weight(kernels, s, "conv2d", windows_depth(s), s.out, weight, place);
  convolve_images(s, x, bias, y, finish,
                  [&](const bf16* image, const float* start, bf16* to, const auto& done) {
                    convolve_image(kernels, s, image, packed.data(), start, false, to, done);
                  });
}

void conv_backward_bf16(const Bf16Kernels& kernels, const ConvSize& s, const bf16* dy, const bf16* x,
                        const bf16* weight, const LayerGradients<bf16>& gradients) {
  const Target<bf16> dx = gradients.dx, dweight = gradients.dweight, dbias = gradients.dbias;
  std::optional<InputGradients> inputs;
  if (dx) inputs.emplace(kernels, s, dy, weight, dx);
  const bool summed = dweight || dbias;
  const ConvSums sums = bf16_sums(s);
  const Workspace<float> parts(summed ? sums.elements() : 0);
  if (DryRun::active()) return;
  // Both gradients of an image follow one another, so that the second finds its dy in the cache.
  parallel_for(s.images, summed ? sums.grain : 1, [&](int64_t begin, int64_t end) {
    float* own = summed ? parts.data() + begin / sums.grain * sums.stride : nullptr;
    if (summed) std::fill_n(own, sums.stride, 0.0f);
    for (int64_t b = begin; b < end; ++b) {
      if (inputs) inputs->image(b);
      if (summed)
        add_bf16_sums(kernels, s, dy + b * s.positions() * s.out, x + b * s.height * s.width * s.in, own,
                      dbias ? own + s.out * sums.length : nullptr);
    }
  });
  if (summed) sums.total(s, parts.data(), dweight, dbias);
}

}  // namespace tessera
