#pragma once

#include "engine/cuda/blas.h"
#include "engine/cuda/index.h"
#include "engine/cuda/launch.h"

namespace tessera {

// y [rows, width] += bias [width].
template <class T> void add_bias(int64_t rows, int64_t width, const T* bias, T* y) {
  map(rows * width, y, true, [=] __device__(int64_t i) { return Wide<T>(bias[split_off(i, width)]); });
}

// c = op(a) op(b) + bias [n]; a null bias adds nothing. cuBLASLt adds the bias where it can, else a kernel
// does after the product.
template <class T>
void multiply_biased(const MatrixProduct& product, const T* a, const T* b, T* c, const T* bias) {
  if (bias && multiply_with(Epilogue::bias, product, a, b, c, bias)) return;
  multiply(product, a, b, c, false);
  if (bias) add_bias(product.m, product.n, bias, c);
}

}  // namespace tessera
