#pragma once

#include <cstdint>

#include "engine/ops/activations.h"
#include "engine/ops/kernel_arguments.h"

namespace tessera {

// x [rows, in], weight [out, in], y [rows, out].
struct LinearSize {
  int64_t rows, in, out;
};

template <class Dev> struct LinearKernels {
  // y = f(z), z = x weight^T + bias. bias [out] or null. kept [rows, out] or null: what this device's
  // backward pass reads, either f'(z) or z itself.
  template <class T>
  static void forward(const LinearSize& size, const T* x, const T* weight, const T* bias, Activation f, T* y,
                      T* kept);

  // dz = dy f'(z); dx = dz weight; dweight = dz^T x; dbias = the sum of dz over the rows. kept is null where
  // f is the identity; otherwise dz overwrites it. x is read for dweight alone, weight for dx.
  template <class T>
  static void backward(const LinearSize& size, Activation f, const T* dy, T* kept, const T* x,
                       const T* weight, const LayerGradients<T>& gradients);
};

}  // namespace tessera
