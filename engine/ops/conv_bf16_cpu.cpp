#include "engine/ops/conv_bf16.h"

#include "engine/core/parallel.h"
#include "engine/core/scratch.h"
#include "engine/cpu/bf16_panels.h"
#include "engine/cpu/each.h"
#include "engine/ops/conv_parts.h"
#include "engine/ops/conv_windows.h"

// As conv_cpu.cpp, with the products of engine/cpu/bf16_gemm.h: windows are copied as they are stored, and
// what is written is rounded once, from sums in float.

namespace tessera {

namespace {

constexpr int of_rows = 20, of_left = 21, of_right = 22, of_sum = 23;  // keys of a thread's scratch memory
constexpr float one = 1;

int64_t row_length(const ConvSize& s) { return whole_bf16_vectors(s.window() * s.in); }
int64_t rows_at_once(const ConvSize& s) { return rows_at_once(s, row_length(s) * int64_t{sizeof(bf16)}); }

// The windows of the rows [first, last) of an image, as a left factor; those of one pixel lie there already.
LeftPairs windows(const ConvSize& s, const bf16* image, int64_t first, int64_t last) {
  if (s.window() == 1 && s.stride == 1 && s.padding == 0 && s.in % 2 == 0)
    return {image + first * s.width * s.in, s.in, 2};
  const int64_t length = row_length(s);
  bf16* rows = thread_scratch<bf16, of_rows>(rows_at_once(s) * s.out_w * length);
  copy_windows(s, image, first, last, length, rows);
  return {rows, length, 2};
}

// Calls f(first row, last row, windows) for the image's rows of windows, some at a time.
template <class F> void for_rows(const ConvSize& s, F&& f) {
  const int64_t step = rows_at_once(s);
  for (int64_t i = 0; i < s.out_h; i += step) {
    const int64_t last = std::min(s.out_h, i + step);
    f(i, last, (last - i) * s.out_w);
  }
}

// y = bias + the image's windows times B or, with `add`, += the product; bias may be null.
void convolve_image(const Bf16Kernels& kernels, const ConvSize& s, const bf16* image, const bf16* panels,
                    const float* bias, bool add, bf16* y) {
  for_rows(s, [&](int64_t first, int64_t last, int64_t count) {
    multiply_bf16_panels(kernels, count, s.out, s.window() * s.in, windows(s, image, first, last), panels,
                         bias, add, y + first * s.out_w * s.out);
  });
}

// The gradient of an image for any stride: each window's gradient is computed and scattered to its pixels.
void scatter_to_image(const Bf16Kernels& kernels, const ConvSize& s, const bf16* dy, const bf16* panels,
                      bool add, bf16* dx) {
  const int64_t length = row_length(s), pixels = s.height * s.width * s.in, pairs = pairs_of(s.out),
                n = s.window() * s.in;
  float* rows = thread_scratch<float, of_rows>(rows_at_once(s) * s.out_w * length);
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

// Adds an image's part of d weight, [out, length] of windows' rows, and of d bias.
void sums_of_image(const Bf16Kernels& kernels, const ConvSize& s, const bf16* dy, const bf16* image,
                   float* dturned, float* dbias) {
  const int64_t length = row_length(s), n = s.window() * s.in;
  for_rows(s, [&](int64_t first, int64_t last, int64_t count) {
    const LeftPairs rows = windows(s, image, first, last);
    bf16* panels = thread_scratch<bf16, of_right>(bf16_packed_elements(count, n));
    pack_bf16_panels(kernels, count, n, {rows.data, rows.row}, panels);
    const LeftPairs left =
        left_factor<of_left>(kernels, s.out, count, {dy + first * s.out_w * s.out, s.out, true});
    const int64_t pairs = pairs_of(count);
    for (int64_t j = 0; j < n; j += bf16_panel) {
      const FloatTarget to{dturned + j, length};
      kernels.multiply(s.out, whole_bf16_vectors(std::min(bf16_panel, n - j)), pairs, left,
                       {panels + j * 2 * pairs, 2 * bf16_panel}, 1, to, to);
    }
  });
  for (int64_t r = 0; r < s.positions(); ++r)
    write_each(0, s.out, dbias, true, [row = dy + r * s.out](int64_t o) { return float(row[o]); });
}

// The weight as a right factor [depth, n] in panels.
class PackedWeight {
 public:
  PackedWeight(int64_t depth, int64_t n)
      : depth_(depth), n_(n), turned_(depth * n), panels_(bf16_packed_elements(depth, n)) {}

  // Element place(o, c, k) of the factor, counted row by row, is weight[o, c, k], k the tap of the window.
  template <class Place>
  void pack(const Bf16Kernels& kernels, const ConvSize& s, const bf16* weight, Place place) const {
    for (int64_t o = 0; o < s.out; ++o)
      for (int64_t c = 0; c < s.in; ++c)
        for (int64_t k = 0; k < s.window(); ++k)
          turned_.data()[place(o, c, k)] = weight[(o * s.in + c) * s.window() + k];
    pack_bf16_panels(kernels, depth_, n_, {turned_.data(), n_}, panels_.data());
  }

  const bf16* panels() const { return panels_.data(); }

 private:
  int64_t depth_, n_;
  Workspace<bf16> turned_, panels_;
};

void input_gradient(const Bf16Kernels& kernels, const ConvSize& s, const bf16* dy, const bf16* weight,
                    const Target<bf16>& dx) {
  const bool turns = turns_round(s);
  const int64_t pixels = s.height * s.width * s.in, outputs = s.positions() * s.out;
  const PackedWeight packed(turns ? s.window() * s.out : s.out, turns ? s.in : s.window() * s.in);
  if (DryRun::active()) return;
  packed.pack(kernels, s, weight, [=](int64_t o, int64_t c, int64_t k) {
    return turns ? ((s.window() - 1 - k) * s.out + o) * s.in + c : (o * s.window() + k) * s.in + c;
  });
  const ConvSize round = turns ? turned_round(s) : s;
  parallel_for(s.images, 1, [&](int64_t b, int64_t) {
    const bf16* from = dy + b * outputs;
    bf16* to = dx.data + b * pixels;
    if (turns)
      convolve_image(kernels, round, from, packed.panels(), nullptr, dx.add, to);
    else
      scatter_to_image(kernels, s, from, packed.panels(), dx.add, to);
  });
}

}  // namespace

void conv_forward_bf16(const Bf16Kernels& kernels, const ConvSize& s, const bf16* x, const bf16* weight,
                       const bf16* bias, bf16* y) {
  const PackedWeight packed(s.window() * s.in, s.out);
  const Workspace<float> start(bias ? whole_bf16_panels(s.out) : 0);
  if (DryRun::active()) return;
  packed.pack(kernels, s, weight,
              [=](int64_t o, int64_t c, int64_t k) { return (k * s.in + c) * s.out + o; });
  if (bias) std::fill(std::copy_n(bias, s.out, start.data()), start.data() + whole_bf16_panels(s.out), 0.0f);
  parallel_for(s.images, 1, [&](int64_t b, int64_t) {
    convolve_image(kernels, s, x + b * s.height * s.width * s.in, packed.panels(),
                   bias ? start.data() : nullptr, false, y + b * s.positions() * s.out);
  });
}

void conv_backward_bf16(const Bf16Kernels& kernels, const ConvSize& s, const bf16* dy, const bf16* x,
                        const bf16* weight, const LayerGradients<bf16>& gradients) {
  const auto& [dx, dweight, dbias] = gradients;
  if (dx) input_gradient(kernels, s, dy, weight, dx);
  if (!dweight && !dbias) return;
  const ConvSums sums(s, row_length(s));
  const Workspace<float> parts(sums.elements());
  if (DryRun::active()) return;
  parallel_for(s.images, sums.grain, [&](int64_t begin, int64_t end) {
    float* own = parts.data() + begin / sums.grain * sums.stride;
    std::fill_n(own, sums.stride, 0.0f);
    for (int64_t b = begin; b < end; ++b)
      sums_of_image(kernels, s, dy + b * s.positions() * s.out, x + b * s.height * s.width * s.in, own,
                    own + s.out * sums.length);
  });
  sums.total(s, parts.data(), dweight, dbias);
}

}  // namespace tessera
