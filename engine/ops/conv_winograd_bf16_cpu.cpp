#include "engine/ops/conv_winograd_bf16.h"

#include <algorithm>
#include <array>

#include "engine/ops/conv_parts.h"
#include "engine/ops/conv_winograd_squares.h"

namespace tessera {

namespace {

constexpr int of_zeros = 24, of_pixels = 25, of_outputs = 26;  // keys of a thread's scratch memory
constexpr int64_t points = winograd_points;
constexpr int64_t cached = 3 << 16;  // bytes of the second cache for the points of some squares

MadeOfWeight<bf16> weight_at_points(const ConvSize& s, const bf16* weight, bool turned) {
  const int64_t depth = turned ? s.out : s.in;
  return {weight,
          {turned ? "conv2d, dx at points" : "conv2d at points", s.weight_shape()},
          points * s.in * s.out,
          [&](bf16* panels) {
            if (DryRun::active()) return;
            for_weight_at_points<float>(
                s, weight, turned, [=](int64_t from, int64_t column, int64_t point, float w) {
                  const int64_t panel = column / bf16_panel * points + point,
                                pair = panel * depth / 2 + from / 2;
                  panels[2 * (pair * bf16_panel + column % bf16_panel) + from % 2] = bf16(w);
                });
          }};
}

}  // namespace

ConvAtPoints::ConvAtPoints(const Bf16Kernels& kernels, const ConvSize& size, const bf16* weight, bool turned)
    : kernels_(kernels),
      size_(turned ? turned_round(size) : size),
      panels_(weight_at_points(size, weight, turned)) {}

void ConvAtPoints::image(const bf16* image, const float* start, bool add, bf16* y, const Finish& done) const {
  const ConvSize& s = size_;
  alignas(64) static constexpr std::array<float, bf16_panel> zeros{};
  const Squares q(s, points * (s.in * int64_t{sizeof(bf16)} + bf16_panel * int64_t{sizeof(float)}), cached);
  const int64_t plane = plane_of<bf16>(q.most(), s.in), made_plane = plane_of<float>(q.most(), bf16_panel),
                row = s.out_w * s.out;
  bf16* const pixels = thread_scratch<bf16, of_pixels>(points * plane);
  float* const made = thread_scratch<float, of_outputs>(points * made_plane);
  for (int64_t i = 0; i < q.down; i += q.at_once) {
    const int64_t last = std::min(q.down, i + q.at_once);
    for_rows_of_pixels<of_zeros>(s, image, i, last, pixels, [&](const auto& rows, bf16* to) {
      kernels_.pixels_to_points({q.across, s.width, s.in, s.padding, rows, plane, to});
    });
    for (int64_t o = 0; o < s.out; o += bf16_panel) {
      for (int64_t p = 0; p < points; ++p)
        kernels_.multiply((last - i) * q.across, bf16_panel, s.in / 2, {pixels + p * plane, s.in, 2},
                          {panels_.data() + (o * points + p * bf16_panel) * s.in, 2 * bf16_panel}, 1,
                          {nullptr, 0}, {made + p * made_plane, bf16_panel});
      for (int64_t r = i; r < last; ++r) {
        bf16* to = y + 2 * r * row + o;
        kernels_.outputs_of_points({s.out_w,
                                    made + (r - i) * q.across * bf16_panel,
                                    made_plane,
                                    start ? start + o : zeros.data(),
                                    add,
                                    {to, 2 * r + 1 < s.out_h ? to + row : nullptr},
                                    s.out});
      }
    }
    if (done) done(2 * i, std::min(s.out_h, 2 * last));
  }
}

}  // namespace tessera
