#pragma once

#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/cpu/walk.h"

namespace tessera {

// How a contiguous x of some shape is summed to y, of a shape that broadcasts to it. x's last axis, after
// axes of one entry are left out and like neighbours are one, is walked by itself.
struct Fold {
  Walk<2> kept;            // through x and y, over the other axes that stay
  Walk<1> summed;          // through x, over the other axes that are summed
  int64_t width = 1;       // of the last axis
  bool width_kept = true;  // whether it stays or is summed

  Fold(const Shape& from, const Shape& to);

  int64_t outputs() const { return kept.elements(kept.rank) * (width_kept ? width : 1); }
};

template <class Dev> struct ReduceKernels {
  // y = factor * sum, written or added to.
  template <class T> static void sum(const Fold& fold, double factor, const T* x, T* y, bool add);
};

// Along the middle axis of x [outer, count, inner]; y and `at`, where the largest stands, [outer, inner].
template <class Dev> struct MaxKernels {
  template <class T>
  static void forward(int64_t outer, int64_t count, int64_t inner, const T* x, T* y, int64_t* at);

  // dx [outer, count, inner], written or added to.
  template <class T>
  static void backward(int64_t outer, int64_t count, int64_t inner, const T* dy, const int64_t* at, T* dx,
                       bool add);
};

}  // namespace tessera
