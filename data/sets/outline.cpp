#include "data/sets/outline.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tessera {

namespace {

constexpr double pi = std::numbers::pi;
constexpr int lines_per_row = 4;
constexpr int round_points = 40;

using Contour = std::vector<Point>;

// Appends points on a circle about (x, 0), from angle `from` to `to`.
void append_arc(Contour& contour, double x, double radius, double from, double to, int points) {
  for (int i = 0; i < points; ++i) {
    const double angle = from + (to - from) * i / (points - 1);
    contour.push_back({x + radius * std::cos(angle), radius * std::sin(angle)});
  }
}

Contour circle(double radius) {
  Contour contour;
  append_arc(contour, 0, radius, 0, 2 * pi * (round_points - 1) / round_points, round_points);
  return contour;
}

// Finds where the horizontal line at y crosses the edges, in ascending order.
void crossings(const Outline& outline, double y, std::vector<double>& xs) {
  xs.clear();
  for (const Contour& contour : outline.contours)
    for (size_t i = 0; i < contour.size(); ++i) {
      const Point &p = contour[i], &q = contour[(i + 1) % contour.size()];
      if ((p.y <= y) != (q.y <= y)) xs.push_back(p.x + (q.x - p.x) * (y - p.y) / (q.y - p.y));
    }
  std::sort(xs.begin(), xs.end());
}

// Adds to each pixel of a row the share that [from, to) covers.
void add_span(float* row, int size, double from, double to, float weight) {
  from = std::max(from, 0.0);
  to = std::min(to, static_cast<double>(size));
  for (int x = static_cast<int>(from); x < to; ++x) {
    const double covered = std::min(to, x + 1.0) - std::max(from, static_cast<double>(x));
    row[x] += weight * static_cast<float>(covered);
  }
}

}  // namespace

Outline transformed(const Outline& outline, const Placement& by) {
  Outline out = outline;
  for (Contour& contour : out.contours)
    for (Point& p : contour) p = {by.a * p.x + by.b * p.y + by.c, by.d * p.x + by.e * p.y + by.f};
  return out;
}

std::vector<float> coverage(const Outline& outline, int size) {
  std::vector<float> covered(static_cast<size_t>(size) * static_cast<size_t>(size), 0.0f);
  std::vector<double> xs;
  for (int line = 0; line < size * lines_per_row; ++line) {
    float* row = covered.data() + int64_t{line / lines_per_row} * size;
    crossings(outline, (line + 0.5) / lines_per_row, xs);
    for (size_t i = 0; i + 1 < xs.size(); i += 2) add_span(row, size, xs[i], xs[i + 1], 1.0f / lines_per_row);
  }
  return covered;
}

Outline disc_outline() { return {{circle(0.95)}}; }

Outline regular_outline(int corners) {
  Contour contour;
  for (int i = 0; i < corners; ++i) {
    const double angle = 2 * pi * i / corners;
    contour.push_back({1.1 * std::cos(angle), 1.1 * std::sin(angle)});
  }
  return {{contour}};
}

Outline star_outline() {
  Contour contour;
  for (int i = 0; i < 10; ++i) {
    const double radius = i % 2 == 0 ? 1.2 : 0.5, angle = pi * i / 5;
    contour.push_back({radius * std::cos(angle), radius * std::sin(angle)});
  }
  return {{contour}};
}

Outline cross_outline() {
  constexpr double r = 1.05, w = 0.32;
  return {{{{r, -w},
            {r, w},
            {w, w},
            {w, r},
            {-w, r},
            {-w, w},
            {-r, w},
            {-r, -w},
            {-w, -w},
            {-w, -r},
            {w, -r},
            {w, -w}}}};
}

Outline ring_outline() { return {{circle(1.0), circle(0.55)}}; }

Outline crescent_outline() {  // the unit disc without a disc of radius r about (d, 0)
  constexpr double d = 0.55, r = 0.85, x = (1 + d * d - r * r) / (2 * d);
  const double outer = std::acos(x), inner = std::atan2(std::sqrt(1 - x * x), x - d);
  Contour contour;
  append_arc(contour, 0, 1.1, outer, 2 * pi - outer, round_points);
  append_arc(contour, 1.1 * d, 1.1 * r, 2 * pi - inner, inner, round_points);
  return {{contour}};
}

Outline heart_outline() {  // the well-known trigonometric heart curve, about 34 wide
  Contour contour;
  for (int i = 0; i < round_points; ++i) {
    const double t = 2 * pi * i / round_points, s = std::sin(t);
    const double y = 13 * std::cos(t) - 5 * std::cos(2 * t) - 2 * std::cos(3 * t) - std::cos(4 * t);
    contour.push_back({16 * s * s * s / 15, -y / 15});
  }
  return {{contour}};
}

Outline arrow_outline() {
  constexpr double shaft = 0.24, head = 0.75;
  return {
      {{{1.2, 0}, {0.2, head}, {0.2, shaft}, {-1.1, shaft}, {-1.1, -shaft}, {0.2, -shaft}, {0.2, -head}}}};
}

Outline bar_outline(double half_width) {
  return {{{{1, -half_width}, {1, half_width}, {-1, half_width}, {-1, -half_width}}}};
}

Outline arc_outline(double angle) {
  Contour contour;
  append_arc(contour, 0, 1.0, 0, angle, 12);
  append_arc(contour, 0, 0.65, angle, 0, 12);
  return {{contour}};
}

}  // namespace tessera
