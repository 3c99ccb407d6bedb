#pragma once

#include <cstdint>

#include "engine/core/dtype.h"

namespace tessera {

// Products of row-major matrices in device memory by cuBLASLt: c = op(a) op(b), where op transposes if asked,
// op(a) [m, k], op(b) [k, n], c [m, n]; the row strides lda, ldb, ldc are those of the arrays as they lie.
struct MatrixProduct {
  bool transpose_a = false, transpose_b = false;
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0;
  int64_t count = 1;                           // products at once
  int64_t a_step = 0, b_step = 0, c_step = 0;  // elements from one product's matrices to the next
};

// What is done to c before it is written.
enum class Epilogue : uint8_t { none, bias, gelu_tanh, bias_gelu_tanh };

// c is written, or added to. float in full precision, or by TF32 where set_tf32 allows it; bf16 summed in
// float; double. The same sizes give the same bits: no algorithm that adds up in the order of arrival is
// chosen.
template <class T> void multiply(const MatrixProduct& product, const T* a, const T* b, T* c, bool add);

// The same with an epilogue, c written; bias [n] for one that reads it. False, and nothing is done, where
// cuBLASLt has no algorithm for it, as for some types and alignments.
template <class T>
bool multiply_with(Epilogue epilogue, const MatrixProduct& product, const T* a, const T* b, T* c,
                   const T* bias);

// Whether products of float may round their factors to 10 bits (TF32): several times faster. Off at first.
void set_tf32(bool allowed);

}  // namespace tessera
