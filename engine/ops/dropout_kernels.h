#pragma once

#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/core/random.h"

namespace tessera {

template <class Dev> struct DropoutKernels {
  // y[i] = x[i] m / (1 - p), written or added to, for n elements; m = 0 where word i % 4 of philox(key, i /
  // 4), as a number in [0, 1), is below p, else 1.
  template <class T> static void dropout(int64_t n, double p, uint64_t key, const T* x, T* y, bool add);

  // y = x + f m / (1 - p), images of `width` elements; m as path_kept says. x null: y = f m / (1 - p),
  // written or added to.
  template <class T>
  static void drop_path(int64_t images, int64_t width, double p, uint64_t key, const T* x, const T* f, T* y,
                        bool add);
};

TESSERA_HD inline bool path_kept(int64_t image, double p, uint64_t key) {
  return unit_float(philox(key, static_cast<uint64_t>(image))[0]) >= static_cast<float>(p);
}

}  // namespace tessera
