#pragma once

#include <cstdint>
#include <limits>

#include "engine/core/device.h"

namespace tessera {

template <class T> struct ClipItem {
  int64_t n;  // elements
  T* g;       // a gradient
};

// Sets norm [3], as clip_on_device (clip.h) describes it, from this step's norm `root`.
TESSERA_HD inline void set_norm(double root, double largest, double* norm) {
  norm[0] = root;
  if (!(root < largest)) norm[2] = 1;
  norm[1] = norm[2] == 0 ? root : std::numeric_limits<double>::quiet_NaN();
}

template <class Dev> struct ClipKernels {
  // The sum of the squares of all elements of `count` items.
  template <class T> static double squares(const ClipItem<T>* items, int64_t count);

  // Sets norm [3], in the arrays' memory, by set_norm from the root of the sum of squares. Then
  // g *= max_norm / norm, if the norm is finite and larger than max_norm, and max_norm is above 0.
  template <class T>
  static void clip(const ClipItem<T>* items, int64_t count, double max_norm, double largest, double* norm);

  // g *= factor.
  template <class T> static void scale(const ClipItem<T>* items, int64_t count, double factor);
};

}  // namespace tessera
