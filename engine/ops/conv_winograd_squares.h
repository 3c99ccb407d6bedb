#pragma once

// How minimal filtering (conv_winograd.h) cuts images and lays out what lies at its points, in any type.

#include <algorithm>
#include <cstdint>

#include "engine/core/parallel.h"
#include "engine/core/scratch.h"
#include "engine/cpu/each.h"
#include "engine/ops/conv_kernels.h"
#include "engine/ops/conv_winograd_points.h"

namespace tessera {

inline constexpr int64_t winograd_points = 16;  // of a square

// An image is cut into squares of outputs: `down` rows of `across`, `at_once` rows at a time. The last ones
// may reach beyond the outputs.
struct Squares {
  int64_t down, across, at_once;

  // A square takes so many bytes, and those at once `most`.
  Squares(const ConvSize& s, int64_t bytes, int64_t most)
      : down((s.out_h + 1) / 2),
        across((s.out_w + 1) / 2),
        at_once(std::clamp<int64_t>(chunk_length(most / bytes) / across, 1, down)) {}

  int64_t most() const { return at_once * across; }
};

// Numbers at points: those of a point follow one another, [points, squares, channels], with a gap after them
// so that the points' lines do not all want the same places of the first cache.
template <class W> int64_t plane_of(int64_t squares, int64_t channels) {
  return squares * channels + 128 / static_cast<int64_t>(sizeof(W));
}

// Calls take(rows, to) for each row of squares of the rows [first, last) of an image: the four rows of pixels
// that it reads, [width, in], and the two that the next one reads first. Its points are written at `to` and,
// `plane` apart, after it. Beyond the image there are zeros, in the thread's scratch memory `of_zeros`.
template <int of_zeros, class W, class Take>
void for_rows_of_pixels(const ConvSize& s, const W* image, int64_t first, int64_t last, W* to, Take take) {
  const int64_t length = s.width * s.in, squares = (s.out_w + 1) / 2;
  W* const zeros = thread_scratch<W, of_zeros>(length);
  clear(zeros, length);
  const auto pixels = [=, &s](int64_t y) -> const W* {
    return y < s.padding || y >= s.height + s.padding ? zeros : image + (y - s.padding) * length;
  };
  for (int64_t y = 2 * first; y < 2 * last; y += 2, to += squares * s.in) {
    const W* const rows[6] = {pixels(y),     pixels(y + 1), pixels(y + 2),
                              pixels(y + 3), pixels(y + 4), pixels(y + 5)};
    take(rows, to);
  }
}

// Calls put(from, column, point, w) for the weight [out, in, 3, 3] at the points, where it is a matrix of
// `from` rows and columns. With `turned` it is the flipped weight of the convolution that makes dx, from the
// outputs' channels to the inputs'. W is the type of the additions.
template <class W, class T, class Put>
void for_weight_at_points(const ConvSize& s, const T* weight, bool turned, Put put) {
  parallel_for(s.out, 1, [&](int64_t o, int64_t) {
    for (int64_t c = 0; c < s.in; ++c) {
      Line<W, 4> rows[3];
      for (int u = 0; u < 3; ++u) {
        const T* w = weight + (o * s.in + c) * s.window() + (turned ? 2 - u : u) * 3;
        rows[u] = turned ? weight_to_points(W(w[2]), W(w[1]), W(w[0]))
                         : weight_to_points(W(w[0]), W(w[1]), W(w[2]));
      }
      for (int j = 0; j < 4; ++j) {
        const Line<W, 4> line = weight_to_points(rows[0].at[j], rows[1].at[j], rows[2].at[j]);
        for (int i = 0; i < 4; ++i) put(turned ? o : c, turned ? c : o, 4 * i + j, line.at[i]);
      }
    }
  });
}

}  // namespace tessera
