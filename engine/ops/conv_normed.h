#pragma once

// A convolution on the CPU and what follows it in evaluation: the batch norm, the addition of a shortcut and
// the activation are computed for a part of the output while that lies in the cache.

#include "engine/ops/batch_norm_kernels.h"
#include "engine/ops/conv_kernels.h"
#include "engine/ops/finish.h"

namespace tessera {

// ConvKernels<Cpu>::forward(), which calls `finish` for each part of y, unless it is null. Fails for sizes
// that tile the map (conv_patches.h) with a `finish`.
template <class T>
void conv_forward(const ConvSize& size, const T* x, const T* weight, const T* bias, T* y,
                  const Finish& finish);

// The same of DepthwiseConvKernels<Cpu>.
template <class T>
void depthwise_forward(const ConvSize& size, const T* x, const T* weight, const T* bias, T* y,
                       const Finish& finish);

// The batch norm of y and what follows: y becomes f(batch_norm(y) + residual), without the residual if that
// is null.
template <class T> struct NormedOutput {
  const T *weight, *bias;
  ColumnStatistics<Wide<T>> by;
  Activation f;
  const T* residual;  // [images, out_h, out_w, out]
};

template <class Dev> struct NormedConvKernels {  // of the CPU alone
  // The bits are those of ConvKernels::forward() or, if `depthwise`, DepthwiseConvKernels::forward(), of
  // BatchNormKernels::forward(), an addition and an activation one after the other.
  template <class T>
  static void forward(const ConvSize& size, bool depthwise, const T* x, const T* weight, const T* bias,
                      const NormedOutput<T>& normed, T* y);
};

}  // namespace tessera
