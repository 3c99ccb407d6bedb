#pragma once

#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/ops/activations.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

// What a column is normed by. [width] each
template <class W> struct ColumnStatistics {
  const W *mean, *variance;
  double eps;
  bool of_batch;  // they were computed from x, so dx goes through them; otherwise they are constants
};

// The operands of z = (x - mean) / sqrt(variance + eps) * weight + bias + residual, which f is applied to.
template <class T> struct NormedColumns {
  const T *x, *weight, *bias;  // x [rows, width]; weight and bias [width]
  ColumnStatistics<Wide<T>> by;
  const T* residual = nullptr;  // like x; null: none is added, as always on a GPU
};

// x [rows, width]; the other arrays [width].
template <class Dev> struct BatchNormKernels {
  // The mean and biased variance of each column; and running += momentum (batch's - running), with the
  // unbiased variance.
  template <class T>
  static void statistics(RowsSize size, const T* x, double momentum, Wide<T>* mean, Wide<T>* variance,
                         Wide<T>* running_mean, Wide<T>* running_var);

  // y = f(z).
  template <class T> static void forward(RowsSize size, const NormedColumns<T>& z, Activation f, T* y);

  // z is computed again, so that nothing but x and the residual is kept for it. dresidual is dz.
  template <class T>
  static void backward(RowsSize size, const T* dy, const NormedColumns<T>& z, Activation f,
                       const LayerGradients<T>& gradients, const Target<T>& dresidual);
};

// The count, mean and sum of squared differences from the mean of the numbers of a column seen so far,
// without the cancellation of plain sums. All zeros at first.
template <class W> struct ColumnMoments {
  W count, mean, squares;

  // Adds one number (Welford, 1962); share = 1 / (count + 1).
  TESSERA_HD void add(W x, W share) {
    const W off = x - mean;
    count += 1;
    mean += off * share;
    squares += off * (x - mean);
  }

  // Adds the numbers of other rows (Chan, Golub and LeVeque, 1979).
  TESSERA_HD void join(const ColumnMoments& other) {
    if (other.count == 0) return;
    const W share = other.count / (count + other.count), off = other.mean - mean;
    squares += other.squares + off * off * count * share;
    mean += off * share;
    count += other.count;
  }
};

}  // namespace tessera
