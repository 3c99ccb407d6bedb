#pragma once

#include <cstdint>

#include "engine/core/dtype.h"

namespace tessera {

template <class Dev> struct BatchNormKernels {
  // The mean and biased variance of each column of x [rows, width]; and
  // running += momentum (batch's - running), the variance made unbiased.
  template <class T>
  static void statistics(int64_t rows, int64_t width, const T* x, double momentum, Wide<T>* mean,
                         Wide<T>* variance, Wide<T>* running_mean, Wide<T>* running_var);

  // y = (x - mean) / sqrt(variance + eps) * weight + bias.
  template <class T>
  static void forward(int64_t rows, int64_t width, const T* x, const T* weight, const T* bias,
                      const Wide<T>* mean, const Wide<T>* variance, double eps, T* y);

  // `batch`: mean and variance depend on x. Gradients are written, or added where the flag before them says
  // so; null where not wanted.
  template <class T>
  static void backward(int64_t rows, int64_t width, bool batch, const T* dy, const T* x, const T* weight,
                       const Wide<T>* mean, const Wide<T>* variance, double eps, bool add_dx, T* dx,
                       bool add_dweight, T* dweight, bool add_dbias, T* dbias);
};

// Of a column's numbers seen so far: how many, their mean, and the sum of the squares about it; without the
// cancellation of plain sums. All zeros before the first.
template <class W> struct ColumnMoments {
  W count, mean, squares;

  // One more number (Welford, 1962); share = 1 / (count + 1).
  TESSERA_HD void add(W x, W share) {
    const W off = x - mean;
    count += 1;
    mean += off * share;
    squares += off * (x - mean);
  }

  // Those of other rows (Chan, Golub and LeVeque, 1979).
  TESSERA_HD void join(const ColumnMoments& other) {
    if (other.count == 0) return;
    const W share = other.count / (count + other.count), off = other.mean - mean;
    squares += other.squares + off * off * count * share;
    mean += off * share;
    count += other.count;
  }
};

}  // namespace tessera
