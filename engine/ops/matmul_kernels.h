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

template <class Dev> struct MatmulKernels {
  // c_i [m, n], written or added to.
  template <class T> static void multiply(const Products& products, const T* a, const T* b, T* c, bool add);
};

}  // namespace tessera
