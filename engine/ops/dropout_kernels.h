#pragma once

#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/core/random.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

template <class Dev> struct DropoutKernels {
  // y[i] = x[i] m / (1 - p) for n elements; m = 0 where word i % 4 of philox(key, i / 4), as a number in
  // [0, 1), is below p, otherwise 1.
  template <class T> static void dropout(int64_t n, double p, uint64_t key, const T* x, Target<T> y);

  // y = x + f m / (1 - p), a row an image; m as path_kept says. Without x (null) y = f m / (1 - p).
  template <class T>
  static void drop_path(RowsSize size, double p, uint64_t key, const T* x, const T* f, Target<T> y);

  // f of drop_path() has the rows of `images` alone here, among which are all that keep it. On a CPU.
  template <class T>
  static void add_branch(RowsSize size, double p, uint64_t key, ImageList images, const T* x, const T* f,
                         T* y);

  // df = dy m / (1 - p) of the rows of `images`, [images.count, width]. On a CPU.
  template <class T>
  static void branch_gradient(int64_t width, double p, uint64_t key, ImageList images, const T* dy,
                              Target<T> df);
};

// Whether image `image` keeps its branch.
TESSERA_HD inline bool path_kept(int64_t image, double p, uint64_t key) {
  return unit_float(philox(key, static_cast<uint64_t>(image))[0]) >= static_cast<float>(p);
}

}  // namespace tessera
