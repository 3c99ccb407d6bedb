#pragma once

#include <cstdint>

#include "engine/ops/activations.h"

namespace tessera {

// x [rows, in], weight [out, in], y [rows, out].
struct LinearSize {
  int64_t rows, in, out;
};

template <class Dev> struct LinearKernels {
  // y = f(z), z = x weight^T + bias. bias [out] or null. kept [rows, out] or null: all that the backward pass
  // of this device needs to know of z, f'(z) or z itself.
  template <class T>
  static void forward(const LinearSize& size, const T* x, const T* weight, const T* bias, Activation f, T* y,
                      T* kept);

  // dz = dy f'(z); dx = dz weight; dweight = dz^T x; dbias = the sum of dz over the rows. dx, dweight, dbias
  // are each null if not wanted, and written or added to. kept is null where f is the identity; else dz takes
  // its place.
  template <class T>
  static void backward(const LinearSize& size, Activation f, const T* dy, T* kept, const T* x,
                       const T* weight, T* dx, bool add_dx, T* dweight, bool add_dweight, T* dbias,
                       bool add_dbias);
};

}  // namespace tessera
