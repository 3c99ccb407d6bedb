#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

// The rows of some images of a batch, `rows` of each, one after another.
struct ImageRows {
  ImageList images;
  int64_t rows;

  // Calls run(first, last, shift) for runs of the rows [begin, end) that lie together in the batch: row i is
  // the batch's row i + shift.
  template <class F> void each_run(int64_t begin, int64_t end, const F& run) const {
    if (!images.data) return run(begin, end, int64_t{0});
    for (int64_t first = begin; first < end;) {
      const int64_t image = first / rows, last = std::min(end, (image + 1) * rows);
      run(first, last, (images.data[image] - image) * rows);
      first = last;
    }
  }
};

template <class Dev> struct LayerNormKernels {
  // x, y [rows, width]; weight, bias [width]; mean, rstd [rows], rstd = 1 / sqrt(var + eps).
  template <class T>
  static void forward(RowsSize size, const T* x, const T* weight, const T* bias, double eps, T* y,
                      Wide<T>* mean, Wide<T>* rstd);

  // dx [rows, width]; dweight, dbias [width].
  template <class T>
  static void backward(RowsSize size, const T* dy, const T* x, const T* weight, const Wide<T>* mean,
                       const Wide<T>* rstd, const LayerGradients<T>& gradients);

  // Both of the rows of some images alone, on a CPU: x and dx are the batch's, all else has `size`.
  template <class T>
  static void forward_of(RowsSize size, const ImageRows& of, const T* x, const T* weight, const T* bias,
                         double eps, T* y, Wide<T>* mean, Wide<T>* rstd);
  template <class T>
  static void backward_of(RowsSize size, const ImageRows& of, const T* dy, const T* x, const T* weight,
                          const Wide<T>* mean, const Wide<T>* rstd, const LayerGradients<T>& gradients);
};

}  // namespace tessera
