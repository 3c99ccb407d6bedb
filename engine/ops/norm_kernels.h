#pragma once

#include <cstdint>

#include "engine/core/dtype.h"

namespace tessera {

template <class Dev> struct LayerNormKernels {
  // x, y [rows, width]; weight, bias [width]; mean, rstd [rows], rstd = 1 / sqrt(var + eps).
  template <class T>
  static void forward(int64_t rows, int64_t width, const T* x, const T* weight, const T* bias, double eps,
                      T* y, Wide<T>* mean, Wide<T>* rstd);

  // dx [rows, width], written or added to. dweight, dbias [width] likewise; null where not wanted.
  template <class T>
  static void backward(int64_t rows, int64_t width, const T* dy, const T* x, const T* weight,
                       const Wide<T>* mean, const Wide<T>* rstd, T* dx, bool add_dx, T* dweight,
                       bool add_dweight, T* dbias, bool add_dbias);
};

}  // namespace tessera
