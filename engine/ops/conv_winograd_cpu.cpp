#include "engine/ops/conv_winograd.h"

#include <algorithm>

#include "engine/core/dispatch.h"
#include "engine/core/made_of_weight.h"
#include "engine/core/parallel.h"
#include "engine/core/scratch.h"
#include "engine/cpu/each.h"
#include "engine/cpu/panel_gemm.h"
#include "engine/ops/conv_parts.h"
#include "engine/ops/conv_winograd_points.h"
#include "engine/ops/conv_winograd_squares.h"

namespace tessera {

namespace {

constexpr int of_zeros = 0, of_pixels = 4, of_outputs = 5;  // keys of a thread's scratch memory
constexpr int64_t points = winograd_points;
// Bytes of the second cache for the points of some squares. For the weight's gradient there are twice as
// many, because all its sums are read and written anew for them.
constexpr int64_t cached = 3 << 16, cached_for_sums = 2 * cached;

// The points of the squares of the rows [first, last) of an image, for all channels.
template <class W>
void image_to_points(const ConvSize& s, const W* image, int64_t first, int64_t last, int64_t plane, W* to) {
  for_rows_of_pixels<of_zeros>(s, image, first, last, to, [&](const auto& rows, W* points_of_row) {
    pixels_to_points(s, rows, plane, points_of_row);
  });
}

// The weight at the points, panel after panel of the output's columns: [panels, points, in, panel_width].
template <class W> MadeOfWeight<W> weight_at_points(const ConvSize& s, const W* weight, bool turned) {
  constexpr int64_t width = panel_width<W>;
  const int64_t depth = turned ? s.out : s.in;
  return {weight,
          {turned ? "conv2d, dx at points" : "conv2d at points", s.weight_shape()},
          points * packed_elements<W>(depth, turned ? s.in : s.out),
          [&](W* panels) {
            if (DryRun::active()) return;
            for_weight_at_points<W>(s, weight, turned, [=](int64_t from, int64_t column, int64_t point, W w) {
              panels[((column / width * points + point) * depth + from) * width + column % width] = w;
            });
          }};
}

// y = bias + the convolution of an image or, with `add`, += it; the bias may be null. done(first, last) is
// called for the rows [first, last) of outputs when they are written.
template <class W, class Done>
void convolve_image(const ConvSize& s, const W* image, const W* panels, const W* bias, bool add, W* y,
                    const Done& done) {
  constexpr int64_t width = panel_width<W>;
  const Squares q(s, points * (s.in + width) * static_cast<int64_t>(sizeof(W)), cached);
  const int64_t plane = plane_of<W>(q.most(), s.in), made_plane = plane_of<W>(q.most(), width);
  W* const pixels = thread_scratch<W, of_pixels>(points * plane);
  W* const made = thread_scratch<W, of_outputs>(points * made_plane);
  for (int64_t i = 0; i < q.down; i += q.at_once) {
    const int64_t last = std::min(q.down, i + q.at_once), squares = (last - i) * q.across;
    image_to_points(s, image, i, last, plane, pixels);
    for (int64_t o = 0; o < s.out; o += width) {
      const int64_t columns = std::min(width, s.out - o);
      for (int64_t p = 0; p < points; ++p)
        panel_gemm<W>(squares, columns, s.in, {pixels + p * plane, s.in, 1},
                      panels + (o * points + p * width) * s.in, {nullptr, 0},
                      {made + p * made_plane, columns});
      for (int64_t r = i; r < last; ++r)
        outputs_of_points(s, r, columns, made + (r - i) * q.across * columns, made_plane,
                          bias ? bias + o : nullptr, add, y + o);
    }
    done(2 * i, std::min(s.out_h, 2 * last));
  }
}

// Adds an image's part of d weight at the points, [points, out, in], and of d bias, which may be null.
template <class W> void add_image(const ConvSize& s, const W* dy, const W* image, W* dpoints, W* dbias) {
  const Squares q(s, points * (s.in + s.out) * static_cast<int64_t>(sizeof(W)), cached_for_sums);
  const int64_t plane = plane_of<W>(q.most(), s.in), dplane = plane_of<W>(q.most(), s.out);
  W* const pixels = thread_scratch<W, of_pixels>(points * plane);
  W* const gradient = thread_scratch<W, of_outputs>(points * dplane);
  for (int64_t i = 0; i < q.down; i += q.at_once) {
    const int64_t last = std::min(q.down, i + q.at_once), squares = (last - i) * q.across;
    image_to_points(s, image, i, last, plane, pixels);
    for (int64_t r = i; r < last; ++r)
      gradient_to_points(s, r, dy, dplane, gradient + (r - i) * q.across * s.out);
    for (int64_t p = 0; p < points; ++p) {
      const Rows<W> to{dpoints + p * s.out * s.in, s.in};
      small_gemm<W>(s.out, s.in, squares, {gradient + p * dplane, 1, s.out}, {pixels + p * plane, s.in}, to,
                    to);
    }
  }
  for (int64_t r = 0; dbias && r < s.positions(); ++r)
    write_each(0, s.out, dbias, true, [row = dy + r * s.out](int64_t o) { return row[o]; });
}

template <class W> void input_gradient(const ConvSize& s, const W* dy, const W* weight, const Target<W>& dx) {
  const MadeOfWeight<W> turned = weight_at_points(s, weight, true);
  if (DryRun::active()) return;
  parallel_for(s.images, 1, [&](int64_t b, int64_t) {
    convolve_image(turned_round(s), dy + b * s.positions() * s.out, turned.data(),
                   static_cast<const W*>(nullptr), dx.add, dx.data + b * s.height * s.width * s.in,
                   [](int64_t, int64_t) {});
  });
}

// d weight from its sums at the points, [points, out, in], of every chunk.
template <class W>
void weight_gradient(const ConvSize& s, const ConvSums& sums, W* parts, const Target<W>& dweight) {
  const int64_t plane = s.out * s.in;
  parallel_for(s.out, 1, [&](int64_t o, int64_t) {
    for (int64_t p = 0; p < points; ++p)
      add_parts(p * plane + o * s.in, p * plane + (o + 1) * s.in, sums.chunks, sums.stride, parts);
    for (int64_t c = 0; c < s.in; ++c) {
      const W* const at = parts + o * s.in + c;
      Line<W, 3> columns[4];
      for (int j = 0; j < 4; ++j)
        columns[j] = weight_of(at[j * plane], at[(4 + j) * plane], at[(8 + j) * plane], at[(12 + j) * plane]);
      W* const window = dweight.data + (o * s.in + c) * s.window();
      for (int u = 0; u < 3; ++u) {
        const auto row = weight_of(columns[0].at[u], columns[1].at[u], columns[2].at[u], columns[3].at[u]);
        write_each(0, 3, window + 3 * u, dweight.add, [&](int64_t v) { return row.at[v]; });
      }
    }
  });
}

}  // namespace

template <class W>
void winograd_forward(const ConvSize& s, const W* x, const W* weight, const W* bias, W* y,
                      const Finish& finish) {
  const MadeOfWeight<W> panels = weight_at_points(s, weight, false);
  if (DryRun::active()) return;
  parallel_for(s.images, 1, [&](int64_t b, int64_t) {
    const int64_t row = s.out_w * s.out, at = b * s.out_h * row;
    convolve_image(s, x + b * s.height * s.width * s.in, panels.data(), bias, false, y + at,
                   [&](int64_t first, int64_t last) {
                     if (finish) finish(at + first * row, at + last * row);
                   });
  });
}

template <class W>
void winograd_backward(const ConvSize& s, const W* dy, const W* x, const W* weight,
                       const LayerGradients<W>& gradients) {
  const auto& [dx, dweight, dbias] = gradients;
  if (dx) input_gradient(s, dy, weight, dx);
  if (!dweight && !dbias) return;
  const ConvSums sums(s, points * s.in, 0, 0);
  const Workspace<W> parts(sums.elements());
  if (DryRun::active()) return;
  const bool biased = bool(dbias);  // clang 14 captures no structured binding
  sums.of_images(s, parts.data(), [&](int64_t b, W* own, W* own_bias) {
    add_image(s, dy + b * s.positions() * s.out, x + b * s.height * s.width * s.in, own,
              biased ? own_bias : nullptr);
  });
  if (dweight) weight_gradient(s, sums, parts.data(), dweight);
  sums.total<W>(s, parts.data(), {}, dbias);
}

#define TESSERA_INSTANTIATE(W)                                                                      \
  template void winograd_forward(const ConvSize&, const W*, const W*, const W*, W*, const Finish&); \
  template void winograd_backward(const ConvSize&, const W*, const W*, const W*, const LayerGradients<W>&);
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double)
#undef TESSERA_INSTANTIATE

}  // namespace tessera
