#pragma once

#include <vector>

namespace tessera {

struct Point {
  double x, y;
};

// An area between closed polygons: a point is inside if a ray from it crosses their edges an odd number of
// times.
struct Outline {
  std::vector<std::vector<Point>> contours;
};

// x' = a x + b y + c, y' = d x + e y + f
struct Affine {
  double a, b, c, d, e, f;
};

Outline transformed(const Outline& outline, const Affine& by);

// How much of each pixel of a size x size grid the outline covers, in [0, 1]: exact along rows, from 4 lines
// a row. Pixel (y, x) spans [x, x + 1) x [y, y + 1). [size, size]
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
// Pieces of clutter: a bar of the given half width, and a part of a ring.
Outline bar_outline(double half_width);
Outline arc_outline(double angle);

}  // namespace tessera
