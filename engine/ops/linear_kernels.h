#pragma once

#include <cstdint>

#include "engine/ops/activations.h"

namespace tessera {

// x [rows, in], weight [out, in], y [rows, out].
struct LinearSize {
  int64_t rows, in, out;
};

template <class Dev> struct LinearKernels {
  // y = f(z), z = x weight^T + bias, and slope = f'(z): all that the backward pass needs to know of z, and
  // both come of one exponential. bias [out] or null; slope [rows, out] or null.
  template <class T>
  static void forward(const LinearSize& size, const T* x, const T* weight, const T* bias, Activation f, T* y,
                      T* slope);

  // dz = dy slope; dx = dz weight; dweight = dz^T x; dbias = the sum of dz over the rows. dx, dweight, dbias
  // are each null if not wanted, and written or added to. slope is null where f is the identity; else dz
  // takes its place.
  template <class T>
  static void backward(const LinearSize& size, const T* dy, T* slope, const T* x, const T* weight, T* dx,
                       bool add_dx, T* dweight, bool add_dweight, T* dbias, bool add_dbias);
};

}  // namespace tessera
