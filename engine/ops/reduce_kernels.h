#pragma once

#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/cpu/walk.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

// How a contiguous x is summed to y, whose shape broadcasts to x's. Axes of one entry are left out, and
// neighbouring axes that are both kept or both summed are merged; the last axis that remains is walked by
// itself.
struct Fold {
  Walk<2> kept;            // through x and y, over the other axes that are kept
  Walk<1> summed;          // through x, over the other axes that are summed
  int64_t width = 1;       // size of the last axis
  bool width_kept = true;  // whether the last axis is kept or summed

  Fold(const Shape& from, const Shape& to);

  int64_t outputs() const { return kept.elements(kept.rank) * (width_kept ? width : 1); }
};

template <class Dev> struct ReduceKernels {
  // y = factor * sum
  template <class T> static void sum(const Fold& fold, double factor, const T* x, Target<T> y);
};

// x [outer, count, inner], reduced along its middle axis to [outer, inner].
struct AxisSize {
  int64_t outer, count, inner;
};

// y, and `at`, the index of the largest along the axis: [outer, inner].
template <class Dev> struct MaxKernels {
  template <class T> static void forward(AxisSize size, const T* x, T* y, int64_t* at);
  template <class T> static void backward(AxisSize size, const T* dy, const int64_t* at, Target<T> dx);
};

}  // namespace tessera
