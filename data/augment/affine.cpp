// Compiled without contraction: a product and a sum are rounded apart, as Pillow's are.
#include "data/augment/affine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numbers>

#include "data/augment/scratch.h"

namespace tessera {

namespace {

// Positions along one axis from `start` in steps of `step`; -1: outside.
std::vector<int> positions(double start, double step, int count, int limit) {
  std::vector<int> at(static_cast<size_t>(count), -1);
  for (int& position : at) {
    if (start >= 0 && start < limit) position = static_cast<int>(start);
    start += step;
  }
  return at;
}

void set(uint8_t* to, const uint8_t* from) { std::memcpy(to, from, 3); }

// Nearest, where rows stay rows.
void scale_nearest(const Image& from, const Affine& m, const Colour& fill, Image& to) {
  const std::vector<int> columns = positions(m.c + m.a * 0.5, m.a, to.width, from.width),
                         rows = positions(m.f + m.e * 0.5, m.e, to.height, from.height);
  for (int y = 0; y < to.height; ++y) {
    const int row = rows[static_cast<size_t>(y)];
    for (int x = 0; x < to.width; ++x) {
      const int column = columns[static_cast<size_t>(x)];
      set(to.at(y, x), row < 0 || column < 0 ? fill.data() : from.at(row, column));
    }
  }
}

int64_t fixed_point(double value) { return static_cast<int64_t>(std::floor(value * 65536.0 + 0.5)); }

// Nearest, in 16.16 fixed point.
void turn_nearest(const Image& from, const Affine& m, const Colour& fill, Image& to) {
  const int64_t a = fixed_point(m.a), b = fixed_point(m.b), d = fixed_point(m.d), e = fixed_point(m.e);
  int64_t row_x = fixed_point(m.c + m.a * 0.5 + m.b * 0.5), row_y = fixed_point(m.f + m.d * 0.5 + m.e * 0.5);
  for (int y = 0; y < to.height; ++y, row_x += b, row_y += e) {
    int64_t at_x = row_x, at_y = row_y;
    for (int x = 0; x < to.width; ++x, at_x += a, at_y += d) {
      const int64_t column = at_x >> 16, row = at_y >> 16;
      const bool inside = column >= 0 && column < from.width && row >= 0 && row < from.height;
      set(to.at(y, x), inside ? from.at(static_cast<int>(row), static_cast<int>(column)) : fill.data());
    }
  }
}

// A filter along a line: `taps` pixels from the `first` one beside a point, t past the pixel before it.
struct Linear {
  static constexpr int first = 0, taps = 2;
  static double along(const std::array<double, 2>& p, double t) { return p[0] + (p[1] - p[0]) * t; }
};
struct Cubic {
  static constexpr int first = -1, taps = 4;
  static double along(const std::array<double, 4>& p, double t) {
    const double p1 = p[1], p2 = p[2] - p[0], p3 = 2 * (p[0] - p[1]) + p[2] - p[3],
                 p4 = -p[0] + p[1] - p[2] + p[3];
    return p1 + t * (p2 + t * (p3 + t * p4));
  }
};

// One axis of a point: the pixels that the filter reads, those beyond the edge taken from it.
template <class F> struct Taps {
  std::array<int, F::taps> at;
  double t;

  Taps(double position, int limit) {
    const double below = std::floor(position - 0.5);
    t = position - 0.5 - below;
    for (int i = 0; i < F::taps; ++i)
      at[static_cast<size_t>(i)] = std::clamp(static_cast<int>(below) + F::first + i, 0, limit - 1);
  }
};

template <class F, class G> double filtered(double t, G&& pixel) {
  if (t == 0) return pixel(-F::first);  // what the formula gives there, exactly
  std::array<double, F::taps> p;
  for (int i = 0; i < F::taps; ++i) p[static_cast<size_t>(i)] = pixel(i);
  return F::along(p, t);
}

template <class F> void sample(const Image& from, double x, double y, uint8_t* to) {
  const Taps<F> columns(x, from.width), rows(y, from.height);
  for (int c = 0; c < 3; ++c) {
    const double value = filtered<F>(rows.t, [&](int i) {
      const uint8_t* row = from.at(rows.at[static_cast<size_t>(i)], 0) + c;
      return filtered<F>(
          columns.t, [&](int j) { return static_cast<double>(row[3 * columns.at[static_cast<size_t>(j)]]); });
    });
    to[c] = static_cast<uint8_t>(static_cast<int>(std::clamp(value, 0.0, 255.0)));
  }
}

template <class F> void interpolate(const Image& from, const Affine& m, const Colour& fill, Image& to) {
  for (int y = 0; y < to.height; ++y)
    for (int x = 0; x < to.width; ++x) {
      const double at_x = m.a * (x + 0.5) + m.b * (y + 0.5) + m.c,
                   at_y = m.d * (x + 0.5) + m.e * (y + 0.5) + m.f;
      const bool inside = at_x >= 0 && at_x < from.width && at_y >= 0 && at_y < from.height;
      if (inside)
        sample<F>(from, at_x, at_y, to.at(y, x));
      else
        set(to.at(y, x), fill.data());
    }
}

// To 15 decimals, as Python's round() does: by way of text, for that alone is exact.
double to_15_decimals(double value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, 15);
  std::from_chars(text.data(), end.ptr, value);
  return value;
}

// A quarter turn or two, counter-clockwise, which move whole pixels.
void turn_exactly(Image& image, int quarters) {
  const Image& from = set_aside(image);
  const int bottom = image.height - 1, right = image.width - 1;
  for (int y = 0; y <= bottom; ++y)
    for (int x = 0; x <= right; ++x)
      set(image.at(y, x), quarters == 2   ? from.at(bottom - y, right - x)
                          : quarters == 1 ? from.at(x, right - y)
                                          : from.at(bottom - x, y));
}

}  // namespace

void transform(Image& image, const Affine& map, Filter filter, const Colour& fill) {
  if (image.pixels.empty()) return;
  const Image& from = set_aside(image);
  if (filter == Filter::bicubic)
    interpolate<Cubic>(from, map, fill, image);
  else if (filter == Filter::bilinear)
    interpolate<Linear>(from, map, fill, image);
  else if (map.b == 0 && map.d == 0)
    scale_nearest(from, map, fill, image);
  else
    turn_nearest(from, map, fill, image);
}

void rotate(Image& image, double degrees, Filter filter, const Colour& fill) {
  degrees = std::fmod(degrees, 360.0);
  if (degrees < 0) degrees += 360.0;
  if (degrees == 0) return;
  const bool square = image.height == image.width;
  if (degrees == 180 || (square && (degrees == 90 || degrees == 270)))
    return turn_exactly(image, static_cast<int>(degrees / 90));
  const double angle = -(degrees * (std::numbers::pi / 180.0));
  const double cosine = to_15_decimals(std::cos(angle)), sine = to_15_decimals(std::sin(angle)),
               minus_sine = to_15_decimals(-std::sin(angle));
  const double x = image.width / 2.0, y = image.height / 2.0;
  transform(
      image,
      {cosine, sine, (cosine * -x + sine * -y) + x, minus_sine, cosine, (minus_sine * -x + cosine * -y) + y},
      filter, fill);
}

}  // namespace tessera
