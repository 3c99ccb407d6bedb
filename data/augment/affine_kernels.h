#pragma once

// The scalar maths of transforms (affine.h), shared by both devices. It is compiled without contraction into
// fused multiply-adds, so that products and sums are rounded one by one, as Pillow's are.

#include <algorithm>
#include <cmath>

#include "data/augment/affine.h"
#include "engine/core/device.h"

namespace tessera {

// A view of an image's bytes. [height, width, 3]
struct Pixels {
  const uint8_t* bytes;
  int height, width;

  TESSERA_HD const uint8_t* at(int y, int x) const { return bytes + (int64_t{y} * width + x) * 3; }
};

struct PixelPlace {
  int row, column;
};

TESSERA_HD inline void set_pixel(uint8_t* to, const uint8_t* from) {
  to[0] = from[0];
  to[1] = from[1];
  to[2] = from[2];
}

// --- quarter turns, which move whole pixels ---

// The place that pixel (y, x) of a height x width image had before 1 to 3 quarter turns counter-clockwise.
// For 1 and 3 the image must be square.
TESSERA_HD inline PixelPlace before_turns(int quarters, int y, int x, int height, int width) {
  const int bottom = height - 1, right = width - 1;
  if (quarters == 2) return {bottom - y, right - x};
  return quarters == 1 ? PixelPlace{x, right - y} : PixelPlace{bottom - x, y};
}

// --- nearest without shear or rotation: rows stay rows ---

// Source positions along one axis, from `start` in steps of `step`; -1 if outside. The steps are added one by
// one, because Pillow's rounding comes from that.
TESSERA_HD inline void positions(double start, double step, int count, int limit, int* at) {
  for (int i = 0; i < count; ++i) {
    at[i] = start >= 0 && start < limit ? static_cast<int>(start) : -1;
    start += step;
  }
}
TESSERA_HD inline void column_positions(const Affine& m, int width, int* at) {
  positions(m.c + m.a * 0.5, m.a, width, width, at);
}
TESSERA_HD inline void row_positions(const Affine& m, int height, int* at) {
  positions(m.f + m.e * 0.5, m.e, height, height, at);
}

// --- nearest, in 16.16 fixed point ---

class FixedMap {
 public:
  TESSERA_HD explicit FixedMap(const Affine& m)
      : a_(fixed(m.a)),
        b_(fixed(m.b)),
        c_(fixed(m.c + m.a * 0.5 + m.b * 0.5)),
        d_(fixed(m.d)),
        e_(fixed(m.e)),
        f_(fixed(m.f + m.d * 0.5 + m.e * 0.5)) {}

  // Writes the source pixel of (y, x), or `fill` if it lies outside.
  TESSERA_HD void write(const Pixels& from, int y, int x, const Colour& fill, uint8_t* to) const {
    const int64_t column = (c_ + a_ * x + b_ * y) >> 16, row = (f_ + d_ * x + e_ * y) >> 16;
    const bool inside = column >= 0 && column < from.width && row >= 0 && row < from.height;
    set_pixel(to, inside ? from.at(static_cast<int>(row), static_cast<int>(column)) : fill.data());
  }

 private:
  TESSERA_HD static int64_t fixed(double value) {
    return static_cast<int64_t>(std::floor(value * 65536.0 + 0.5));
  }
  int64_t a_, b_, c_, d_, e_, f_;
};

// --- filters ---

// An interpolation filter along one axis. It reads `taps` pixels, the first at offset `first` from the pixel
// before the point, which lies t in [0, 1) past that pixel.
struct LinearFilter {
  static constexpr int first = 0, taps = 2;
  TESSERA_HD static double along(const std::array<double, 2>& p, double t) {
    return p[0] + (p[1] - p[0]) * t;
  }
};
struct CubicFilter {
  static constexpr int first = -1, taps = 4;
  TESSERA_HD static double along(const std::array<double, 4>& p, double t) {
    const double p1 = p[1], p2 = p[2] - p[0], p3 = 2 * (p[0] - p[1]) + p[2] - p[3],
                 p4 = -p[0] + p[1] - p[2] + p[3];
    return p1 + t * (p2 + t * (p3 + t * p4));
  }
};

// The pixels that a filter reads along one axis around a point; those beyond the edge repeat the edge.
template <class F> struct Taps {
  std::array<int, F::taps> at;
  double t;

  TESSERA_HD Taps(double position, int limit) {
    const double below = std::floor(position - 0.5);
    t = position - 0.5 - below;
    for (int i = 0; i < F::taps; ++i)
      at[static_cast<size_t>(i)] = std::clamp(static_cast<int>(below) + F::first + i, 0, limit - 1);
  }
};

template <class F, class G> TESSERA_HD double filtered(double t, G&& pixel) {
  if (t == 0) return pixel(-F::first);  // exactly what the formula gives
  std::array<double, F::taps> p;
  for (int i = 0; i < F::taps; ++i) p[static_cast<size_t>(i)] = pixel(i);
  return F::along(p, t);
}

// Writes the interpolated source of pixel (y, x), or `fill` if it lies outside.
template <class F>
TESSERA_HD void write_filtered(const Pixels& from, const Affine& m, int y, int x, const Colour& fill,
                               uint8_t* to) {
  const double at_x = m.a * (x + 0.5) + m.b * (y + 0.5) + m.c, at_y = m.d * (x + 0.5) + m.e * (y + 0.5) + m.f;
  if (!(at_x >= 0 && at_x < from.width && at_y >= 0 && at_y < from.height)) return set_pixel(to, fill.data());
  const Taps<F> columns(at_x, from.width), rows(at_y, from.height);
  for (int c = 0; c < 3; ++c) {
    const double value = filtered<F>(rows.t, [&](int i) {
      const uint8_t* row = from.at(rows.at[static_cast<size_t>(i)], 0) + c;
      return filtered<F>(
          columns.t, [&](int j) { return static_cast<double>(row[3 * columns.at[static_cast<size_t>(j)]]); });
    });
    to[c] = static_cast<uint8_t>(static_cast<int>(std::clamp(value, 0.0, 255.0)));
  }
}

}  // namespace tessera
