#pragma once

#include <cstdint>

#include "engine/core/dtype.h"

namespace tessera {

template <class Dev> struct BatchNormKernels {
  // The mean and biased variance of each column of x [rows, width].
  template <class T>
  static void statistics(int64_t rows, int64_t width, const T* x, Wide<T>* mean, Wide<T>* variance);

  // running += momentum (batch's - running), the variance made unbiased.
  template <class T>
  static void update(int64_t rows, int64_t width, const Wide<T>* mean, const Wide<T>* variance,
                     double momentum, T* running_mean, T* running_var);

  // y = (x - mean) / sqrt(variance + eps) * weight + bias. rstd [width] is left for the backward.
  template <class T>
  static void forward(int64_t rows, int64_t width, const T* x, const T* weight, const T* bias,
                      const Wide<T>* mean, const Wide<T>* variance, double eps, Wide<T>* rstd, T* y);

  // `batch`: mean and variance depend on x. Gradients are written, or added where the flag before them says
  // so; null where not wanted.
  template <class T>
  static void backward(int64_t rows, int64_t width, bool batch, const T* dy, const T* x, const T* weight,
                       const Wide<T>* mean, const Wide<T>* rstd, bool add_dx, T* dx, bool add_dweight,
                       T* dweight, bool add_dbias, T* dbias);
};

}  // namespace tessera
