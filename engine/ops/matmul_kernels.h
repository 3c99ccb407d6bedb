#pragma once

#include <cstdint>

namespace tessera {

// `count` products of op(a_i) [m, k] and op(b_i) [k, n], op transposing where asked. Matrix i starts i steps
// from the first; with a step of 0 there is one for all, and a c of step 0 takes the sum of all products.
struct Products {
  int64_t count, m, n, k;
  bool transpose_a, transpose_b;
  int64_t a_step, b_step, c_step;  // elements
};

// The batch as one product, where memory allows: matrices that lie end to end are one tall matrix.
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
  // c_i [m, n], written or added to.
  template <class T> static void multiply(const Products& products, const T* a, const T* b, T* c, bool add);
};

}  // namespace tessera
