#pragma once

#include <cstdint>

#include "engine/ops/kernel_arguments.h"

namespace tessera {

// `count` products of op(a_i) [m, k] and op(b_i) [k, n], where op transposes if asked. Matrix i begins i
// steps after the first; with step 0 all products share one matrix, and a shared c takes their sum.
struct Products {
  int64_t count, m, n, k;
  bool transpose_a, transpose_b;
  int64_t a_step, b_step, c_step;  // elements
};

// The batch as a single product if its matrices lie end to end in memory: they are one tall or deep matrix.
inline Products joined(const Products& p) {
  Products whole = p;
  if (p.count == 0 && p.c_step == 0) whole.count = 1, whole.k = 0;  // the sum of no products is 0
  const bool tall = !p.transpose_a && p.a_step == p.m * p.k && p.b_step == 0 && p.c_step == p.m * p.n;
  const bool deep =
      p.transpose_a && !p.transpose_b && p.a_step == p.m * p.k && p.b_step == p.k * p.n && p.c_step == 0;
  if (p.count == 0 || (!tall && !deep)) return whole;
  (tall ? whole.m : whole.k) *= p.count;
  whole.count = 1;
  return whole;
}

template <class Dev> struct MatmulKernels {
  // c_i [m, n] = op(a_i) op(b_i)
  template <class T> static void multiply(const Products& products, const T* a, const T* b, Target<T> c);
};

}  // namespace tessera
