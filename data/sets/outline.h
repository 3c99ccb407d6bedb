#pragma once

#include <vector>

namespace tessera {

struct Point {
  double x, y;
};

// An area bounded by closed polygons: a point is inside if a ray from it crosses an odd number of edges.
struct Outline {
  std::vector<std::vector<Point>> contours;
};

// Places an outline in the image: x' = a x + b y + c, y' = d x + e y + f.
struct Placement {
  double a, b, c, d, e, f;
};

Outline transformed(const Outline& outline, const Placement& by);

// The share of each pixel of a size x size grid that the outline covers, in [0, 1]. It is the mean of 4
// horizontal lines, along which it is exact. Pixel (y, x) spans [x, x + 1) x [y, y + 1). [size, size]
std::vector<float> coverage(const Outline& outline, int size);

// The ten outlines of the shapes data set, each about as large as the unit disc.
Outline disc_outline();
Outline regular_outline(int corners);  // 3: triangle, 4: square, 6: hexagon
Outline star_outline();
Outline cross_outline();
Outline ring_outline();
Outline crescent_outline();
Outline heart_outline();
Outline arrow_outline();
// Clutter: a bar of the given half width, and an arc of a ring.
Outline bar_outline(double half_width);
Outline arc_outline(double angle);

}  // namespace tessera
