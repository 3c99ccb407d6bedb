#include "engine/ops/conv_bf16_sums.h"

#include <algorithm>

#include "engine/core/scratch.h"
#include "engine/cpu/bf16_panels.h"
#include "engine/cpu/each.h"
#include "engine/ops/conv_bf16_bands.h"

namespace tessera {

namespace {

constexpr int of_left = 21, of_right = 22, of_even = 23;  // keys of a thread's scratch memory

int64_t sums_row(const BandSize& size) { return whole_bf16_vectors(size.across); }

// dy of some rows of windows, [windows, out], with a row of zeros after each odd number of windows.
const bf16* even_rows(const ConvSize& s, const bf16* dy, int64_t rows) {
  if (s.out_w % 2 == 0) return dy;
  const int64_t length = s.out_w * s.out;
  bf16* copy = thread_scratch<bf16, of_even>(rows * (length + s.out));
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

}  // namespace

ConvSums bf16_sums(const ConvSize& s) {
  const BandSize size = pair_band(s);
  return ConvSums(s, s.kernel_h * sums_row(size), sums_row(size), size.channels);
}

void add_bf16_sums(const Bf16Kernels& kernels, const ConvSize& s, const bf16* dy, const bf16* image,
                   float* dweight,  // NOLINT(readability-non-const-parameter): a FloatTarget writes it
                   float* dbias) {
  const BandSize size = pair_band(s);
  const int64_t row = sums_row(size), length = pairs_of(s.out_w) * 2 * bf16_panel,
                phase = (band_rows(s, bf16_rows_at_once(s)) + s.stride - 1) / s.stride,
                panels = (size.across + bf16_panel - 1) / bf16_panel, products = panels * s.kernel_h,
                x_row = s.stride * s.width * s.in, dy_row = s.out_w * s.out;
  bf16* packed = thread_scratch<bf16, of_right>(panels * s.stride * phase * length);
  for_bf16_rows(s, [&](int64_t first, int64_t last, int64_t) {
    pack_rows(kernels, s, size, pairs_of_band(s, size, image, first, last), last - first, phase, packed);
    const int64_t windows = (last - first) * 2 * pairs_of(s.out_w);
    const bf16* from = even_rows(s, dy + first * dy_row, last - first);
    const LeftPairs left = left_factor<of_left>(kernels, s.out, windows, {from, s.out, true});
    int64_t product = 0;
    for (int64_t j = 0; j < size.across; j += bf16_panel)
      for (int64_t u = 0; u < s.kernel_h; ++u, ++product) {
        prefetch(image + last * x_row, (last - first) * x_row, product, products);
        prefetch(dy + last * dy_row, (last - first) * dy_row, product, products);
        const int64_t at = (j / bf16_panel * s.stride + u % s.stride) * phase + u / s.stride;
        const FloatTarget to{dweight + u * row + j, s.kernel_h * row};
        kernels.multiply(s.out, whole_bf16_vectors(std::min(bf16_panel, size.across - j)), windows / 2, left,
                         {packed + at * length, 2 * bf16_panel}, 1, to, to);
      }
  });
  for (int64_t r = 0; dbias && r < s.positions(); ++r)
    write_each(0, s.out, dbias, true, [at = dy + r * s.out](int64_t o) { return float(at[o]); });
}

}  // namespace tessera
