#pragma once

// The additions of F(2 x 2, 3 x 3) (conv_winograd.h): pixels, weights and outputs are taken to the points of
// a square, and back. In memory the numbers of a point follow one another, [squares, channels], and those of
// the next point begin a `plane` after them.

#include <cstdint>

#include "engine/cpu/simd.h"
#include "engine/ops/conv_kernels.h"

namespace tessera {

// The algorithm in one dimension: V is a number or a vector of them. Four pixels, three weights and two
// outputs are taken to four points; at each of them the output is the product of the other two.
template <class V, int n> struct Line { V at[n]; };

template <class V> Line<V, 4> to_points(const V& a, const V& b, const V& c, const V& d) {
  return {{a - c, b + c, c - b, d - b}};
}
template <class V> Line<V, 4> weight_to_points(const V& a, const V& b, const V& c) {
  return {{a, (a + b + c) * V(0.5f), (a - b + c) * V(0.5f), c}};
}
template <class V> Line<V, 2> outputs_of(const V& a, const V& b, const V& c, const V& d) {
  return {{a + b + c, b - c + d}};
}

// The adjoint maps, for gradients.
template <class V> Line<V, 4> outputs_to_points(const V& a, const V& b) { return {{a, a + b, a - b, b}}; }
template <class V> Line<V, 3> weight_of(const V& a, const V& b, const V& c, const V& d) {
  return {{a + (b + c) * V(0.5f), (b - c) * V(0.5f), (b + c) * V(0.5f) + d}};
}

// A row of squares to points. rows: the four rows of pixels that they read, [width, in], and the two that
// those of the next row of squares read first, which are asked for.
template <class W> void pixels_to_points(const ConvSize& s, const W* const (&rows)[6], int64_t plane, W* to) {
  for (int64_t c = 0; c < s.in; c += lanes<W>, to += lanes<W>) {
    const auto column = [&](int64_t x) {
      const int64_t at = (x - s.padding) * s.in + c;
      if (x < s.padding || x >= s.width + s.padding) return Line<Vector<W>, 4>{};
      return to_points(load_vector(rows[0] + at), load_vector(rows[1] + at), load_vector(rows[2] + at),
                       load_vector(rows[3] + at));
    };
    Line<Vector<W>, 4> first = column(0), second = column(1);
    W* square = to;
    for (int64_t x = 0; x < s.out_w; x += 2, square += s.in) {
      const Line<Vector<W>, 4> third = column(x + 2), fourth = column(x + 3);
      for (int i = 4; i < 6; ++i) {
        __builtin_prefetch(rows[i] + x * s.in + c);
        __builtin_prefetch(rows[i] + (x + 1) * s.in + c);
      }
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const auto line = to_points(first.at[i], second.at[i], third.at[i], fourth.at[i]);
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) store_vector(square + (4 * i + j) * plane, line.at[j]);
      }
      first = third;
      second = fourth;
    }
  }
}

// Calls put(i, j) for the pixels of the square (y, x) that are outputs.
template <class Put> void each_output(const ConvSize& s, int64_t y, int64_t x, Put put) {
  const bool below = 2 * y + 1 < s.out_h, beside = 2 * x + 1 < s.out_w;
  put(0, 0);
  if (beside) put(0, 1);
  if (below) put(1, 0);
  if (below && beside) put(1, 1);
}

// The outputs of row y of squares, in the columns of one panel, from their points: y = bias + theirs or, with
// `add`, += theirs. The bias may be null.
template <class W>
void outputs_of_points(const ConvSize& s, int64_t y, int64_t columns, const W* from, int64_t plane,
                       const W* bias, bool add, W* to) {
  for (int64_t x = 0; x < (s.out_w + 1) / 2; ++x)
    for (int64_t c = 0; c < columns; c += lanes<W>) {
      const W* square = from + x * columns + c;
      Line<Vector<W>, 2> rows[4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j)
        rows[j] = outputs_of(load_vector(square + j * plane), load_vector(square + (4 + j) * plane),
                             load_vector(square + (8 + j) * plane), load_vector(square + (12 + j) * plane));
      const Vector<W> start = bias ? load_vector(bias + c) : Vector<W>{};
      const Line<Vector<W>, 2> made[2] = {
          outputs_of(rows[0].at[0], rows[1].at[0], rows[2].at[0], rows[3].at[0]),
          outputs_of(rows[0].at[1], rows[1].at[1], rows[2].at[1], rows[3].at[1])};
      each_output(s, y, x, [&](int i, int j) {
        W* pixel = to + ((2 * y + i) * s.out_w + 2 * x + j) * s.out + c;
        __builtin_prefetch(pixel + 2 * s.out_w * s.out, 1);  // of the next row of squares
        store_vector(pixel, (add ? load_vector(pixel) : start) + made[i].at[j]);
      });
    }
}

// The gradient of the outputs of row y of squares, taken to points; beyond the outputs it is zero.
template <class W> void gradient_to_points(const ConvSize& s, int64_t y, const W* dy, int64_t plane, W* to) {
  for (int64_t x = 0; x < (s.out_w + 1) / 2; ++x)
    for (int64_t c = 0; c < s.out; c += lanes<W>) {
      Vector<W> pixels[2][2] = {};
      each_output(s, y, x, [&](int i, int j) {
        pixels[i][j] = load_vector(dy + ((2 * y + i) * s.out_w + 2 * x + j) * s.out + c);
      });
      const auto left = outputs_to_points(pixels[0][0], pixels[1][0]),
                 right = outputs_to_points(pixels[0][1], pixels[1][1]);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const auto line = outputs_to_points(left.at[i], right.at[i]);
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) store_vector(to + (4 * i + j) * plane + x * s.out + c, line.at[j]);
      }
    }
}

}  // namespace tessera
