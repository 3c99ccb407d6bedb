#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "engine/core/made_of_weight.h"
#include "engine/cpu/bf16_panels.h"
#include "engine/cpu/each.h"
#include "engine/cpu/lines_ahead.h"
#include "engine/ops/conv_bf16.h"

namespace tessera {

namespace {

// The taps of all panels of 32 channels; of each panel those of a column of the kernel after the other, two
// rows of the kernel side by side.
struct PackedTaps {
  int64_t column, panel;  // numbers of a column of the kernel, and of a panel

  explicit PackedTaps(const ConvSize& s)
      : column(pairs_of(s.kernel_h) * 2 * bf16_panel), panel(s.kernel_w * column) {}

  int64_t elements(const ConvSize& s) const { return whole_bf16_panels(s.out) / bf16_panel * panel; }

  void pack(const Bf16Kernels& kernels, const ConvSize& s, const bf16* weight, bf16* to) const {
    std::vector<bf16> turned(static_cast<size_t>(s.out * s.window()));  // [kernel_w, kernel_h, out]
    for (int64_t o = 0; o < s.out; ++o)
      for (int64_t u = 0; u < s.kernel_h; ++u)
        for (int64_t v = 0; v < s.kernel_w; ++v)
          turned[static_cast<size_t>((v * s.kernel_h + u) * s.out + o)] =
              weight[o * s.window() + u * s.kernel_w + v];
    for (int64_t o = 0; o < s.out; o += bf16_panel, to += panel)
      for (int64_t v = 0; v < s.kernel_w; ++v)
        kernels.interleave(s.kernel_h, std::min(bf16_panel, s.out - o),
                           turned.data() + v * s.kernel_h * s.out + o, s.out, to + v * column,
                           2 * bf16_panel);
  }
};

// DepthwiseRow's order for so many filters a channel.
std::array<int16_t, 2 * bf16_panel> order_of(int64_t filters) {
  std::array<int16_t, 2 * bf16_panel> order{};
  for (int64_t j = 0; j < bf16_panel; ++j)
    for (const int64_t row : {0, 1})
      order[static_cast<size_t>(2 * j + row)] = static_cast<int16_t>(j / filters + row * bf16_panel);
  return order;
}

// The call returns `count` rows of the map from row `first` on, and `zeros` for those beyond it.
std::vector<const bf16*> rows_of_map(const ConvSize& s, const bf16* image, const bf16* zeros, int64_t first,
                                     int64_t count) {
  std::vector<const bf16*> rows;
  for (int64_t y = first; y < first + count; ++y)
    rows.push_back(y >= 0 && y < s.height ? image + y * s.width * s.in : zeros);
  return rows;
}

// DepthwiseWindows makes the windows of all images: y is or, with `add`, += the sums that begin with start,
// [whole panels].
struct DepthwiseWindows {
  DepthwiseFunction row_of_windows;
  const ConvSize& size;
  const bf16* taps;  // packed
  const float* start;
  const bf16* zeros;  // [width, in]

  void each_row(const bf16* x, bool add, bf16* y, const Finish& finish) const {
    const ConvSize& s = size;
    const int64_t filters = s.out / s.in, row = s.out_w * s.out, panel = PackedTaps(s).panel;
    const std::array order = order_of(filters);
    parallel_rows(s.images * s.out_h, row, [&](int64_t i) {
      const bf16* image = x + i / s.out_h * s.height * s.width * s.in;
      std::vector<const bf16*> rows =
          rows_of_map(s, image, zeros, i % s.out_h * s.stride - s.padding, s.kernel_h);
      LinesAhead ahead = lines_ahead(x, y, i);
      for (int64_t o = 0; o < s.out; o += bf16_panel) {
        ahead.ask();
        row_of_windows({s.out_w, std::min(bf16_panel, s.out - o), rows.data(), s.width, s.in, s.padding,
                        taps + o / bf16_panel * panel, start + o, order.data(), y + i * row + o, s.out, add});
        for (const bf16*& pixels : rows) pixels += bf16_panel / filters;
      }
      if (finish) finish(i * row, (i + 1) * row);
    });
  }

 private:
  // The lines that the next row of windows reads and row i does not, and those that it writes. They are
  // spread over the panels of row i: their pixels lie too far apart for the processor to ask for them by
  // itself.
  LinesAhead lines_ahead(const bf16* x, bf16* y, int64_t i) const {
    const ConvSize& s = size;
    const int64_t of_image = i / s.out_h * s.height, pixels = s.width * s.in, row = s.out_w * s.out;
    const int64_t first = of_image + (i % s.out_h + 1) * s.stride - s.padding + s.kernel_h - s.stride;
    LinesAhead ahead;
    if (first >= 0 && first + s.stride <= s.images * s.height)
      ahead.add_all(x + first * pixels, s.stride * pixels);
    if (i + 1 < s.images * s.out_h) ahead.add_all(y + (i + 1) * row, row);
    ahead.spread((s.out + bf16_panel - 1) / bf16_panel);
    return ahead;
  }
};

}  // namespace

bool depthwise_forward_bf16(const Bf16Kernels& kernels, const ConvSize& s, const bf16* x, const bf16* weight,
                            const bf16* bias, bf16* y, const Finish& finish) {
  const int64_t filters = s.out / s.in;  // of a channel
  const DepthwiseFunction row_of_windows = bf16_panel % filters == 0 && s.kernel_h == s.kernel_w
                                               ? kernels.depthwise(s.kernel_h, s.stride)
                                               : nullptr;
  if (!row_of_windows) return false;
  const PackedTaps packed(s);
  const MadeOfWeight<bf16> taps(weight, {"depthwise_conv2d", s.weight_shape()}, packed.elements(s),
                                [&](bf16* to) {
                                  if (!DryRun::active()) packed.pack(kernels, s, weight, to);
                                });
  const Workspace<float> start(whole_bf16_panels(s.out));
  const Workspace<bf16> zeros(s.width * s.in);
  if (DryRun::active()) return true;
  std::fill_n(start.data(), whole_bf16_panels(s.out), 0.0f);
  if (bias) std::copy_n(bias, s.out, start.data());
  clear(zeros.data(), s.width * s.in);
  DepthwiseWindows{row_of_windows, s, taps.data(), start.data(), zeros.data()}.each_row(x, false, y, finish);
  return true;
}

// Where windows are a pixel apart and have one filter a channel, dx is the convolution of dy with every
// filter turned by half a circle.
bool depthwise_input_gradient_bf16(const Bf16Kernels& kernels, const ConvSize& size, const bf16* dy,
                                   const bf16* weight, const Target<bf16>& dx) {
  const bool turns = size.in == size.out && size.stride == 1 && size.kernel_h == size.kernel_w &&
                     size.padding < size.kernel_h;
  const DepthwiseFunction row_of_windows = turns ? kernels.depthwise(size.kernel_h, 1) : nullptr;
  if (!row_of_windows) return false;
  ConvSize s = size;
  std::swap(s.height, s.out_h);
  std::swap(s.width, s.out_w);
  s.padding = s.kernel_h - 1 - size.padding;
  const PackedTaps packed(s);
  const Workspace<bf16> taps(packed.elements(s)), zeros(s.width * s.in);
  const Workspace<float> start(whole_bf16_panels(s.out));
  if (DryRun::active()) return true;
  std::vector<bf16> turned(weight, weight + s.out * s.window());
  for (int64_t o = 0; o < s.out; ++o)
    std::reverse(turned.begin() + o * s.window(), turned.begin() + (o + 1) * s.window());
  packed.pack(kernels, s, turned.data(), taps.data());
  std::fill_n(start.data(), whole_bf16_panels(s.out), 0.0f);
  clear(zeros.data(), s.width * s.in);
  DepthwiseWindows{row_of_windows, s, taps.data(), start.data(), zeros.data()}.each_row(dy, dx.add, dx.data,
                                                                                        nullptr);
  return true;
}

DepthwiseTapGradients::DepthwiseTapGradients(const Bf16Kernels& kernels, const ConvSize& size)
    : size_(size),
      gradient_(size.in == size.out && size.kernel_h == size.kernel_w
                    ? kernels.depthwise_gradient(size.kernel_h, size.stride)
                    : nullptr),
      zeros_(gradient_ ? static_cast<size_t>(std::max(size.width, size.out_w) * size.in) : 0) {}

void DepthwiseTapGradients::add_image(const bf16* dy, const bf16* x, bool last, float* sums,
                                      int64_t width) const {
  const ConvSize& s = size_;
  std::vector<const bf16*> rows =
      rows_of_map(s, x, zeros_.data(), -s.padding, (s.out_h - 1) * s.stride + s.kernel_h);
  const std::array order = order_of(1);
  LinesAhead ahead;  // of the next image
  ahead.add_all(dy + s.positions() * s.out, last ? 0 : s.positions() * s.out);
  ahead.add_all(x + s.height * s.width * s.in, last ? 0 : s.height * s.width * s.in);
  ahead.spread((s.in + bf16_panel - 1) / bf16_panel);
  for (int64_t c = 0; c < s.in; c += bf16_panel) {
    ahead.ask();
    gradient_({s.out_h, s.out_w, std::min(bf16_panel, s.in - c), dy + c, s.in, rows.data(), zeros_.data(),
               s.width, s.in, s.padding, order.data(), sums + c, width});
    for (const bf16*& pixels : rows) pixels += bf16_panel;
  }
}

}  // namespace tessera
