#pragma once

#include "engine/ops/dropout_kernels.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

// The residual x + f m / (1 - p) of rows, `rows_an_image` of which share an m, by path_kept(image, p, key).
struct ResidualSize {
  RowsSize rows;
  int64_t rows_an_image;
  double p;
  uint64_t key;

  RowsSize images() const {
    return {rows_an_image == 0 ? 0 : rows.rows / rows_an_image, rows_an_image * rows.width};
  }
};

// What a layer norm's backward pass reads; see norm_kernels.h.
template <class T> struct NormOperands {
  const T *x, *weight;
  const Wide<T>*mean, *rstd;
};

template <class Dev> struct ResidualNormKernels {
  // sum = the residual of x and f, and y its layer norm. [rows, width] each
  template <class T>
  static void forward(const ResidualSize& size, const T* x, const T* f, const T* weight, const T* bias,
                      double eps, T* sum, T* y, Wide<T>* mean, Wide<T>* rstd);

  // The norm's gradients, and df = dsum m / (1 - p), where dsum is all that has come to gradients.dx, added
  // up.
  template <class T>
  static void backward(const ResidualSize& size, const T* dy, const NormOperands<T>& norm,
                       const LayerGradients<T>& gradients, T* df);
};

}  // namespace tessera
