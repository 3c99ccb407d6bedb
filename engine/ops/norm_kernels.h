#pragma once

#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

template <class Dev> struct LayerNormKernels {
  // x, y [rows, width]; weight, bias [width]; mean, rstd [rows], rstd = 1 / sqrt(var + eps).
  template <class T>
  static void forward(RowsSize size, const T* x, const T* weight, const T* bias, double eps, T* y,
                      Wide<T>* mean, Wide<T>* rstd);

  // dx [rows, width]; dweight, dbias [width].
  template <class T>
  static void backward(RowsSize size, const T* dy, const T* x, const T* weight, const Wide<T>* mean,
                       const Wide<T>* rstd, const LayerGradients<T>& gradients);
};

}  // namespace tessera
