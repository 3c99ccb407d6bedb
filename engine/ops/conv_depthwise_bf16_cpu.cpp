#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "engine/core/made_of_weight.h"
#include "engine/cpu/bf16_panels.h"
#include "engine/cpu/each.h"
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

// The rows of the map that the windows of row i read, those beyond it `zeros`.
std::vector<const bf16*> rows_of_map(const ConvSize& s, const bf16* image, const bf16* zeros, int64_t i) {
  std::vector<const bf16*> rows;
  for (int64_t y = i * s.stride - s.padding; std::ssize(rows) < s.kernel_h; ++y)
    rows.push_back(y >= 0 && y < s.height ? image + y * s.width * s.in : zeros);
  return rows;
}

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
  const std::array order = order_of(filters);
  const int64_t row = s.out_w * s.out;
  parallel_rows(s.images * s.out_h, row, [&](int64_t i) {
    const bf16* image = x + i / s.out_h * s.height * s.width * s.in;
    std::vector<const bf16*> rows = rows_of_map(s, image, zeros.data(), i % s.out_h);
    for (int64_t o = 0; o < s.out; o += bf16_panel) {
      row_of_windows({s.out_w, std::min(bf16_panel, s.out - o), rows.data(), s.width, s.in, s.padding,
                      taps.data() + o / bf16_panel * packed.panel, start.data() + o, order.data(),
                      y + i * row + o, s.out});
      for (const bf16*& pixels : rows) pixels += bf16_panel / filters;
    }
    if (finish) finish(i * row, (i + 1) * row);
  });
  return true;
}

}  // namespace tessera
