#pragma once

#include <cstdint>

#include "engine/core/dtype.h"

namespace tessera {

// Products of row-major matrices in device memory by cuBLASLt: c = op(a) op(b), where op transposes or not.
// op(a) [m, k], op(b) [k, n], c [m, n]; lda, ldb, ldc are the row strides of the arrays before op.
struct MatrixProduct {
  bool transpose_a = false, transpose_b = false;
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0;
  int64_t count = 1;                           // products in the batch
  int64_t a_step = 0, b_step = 0, c_step = 0;  // elements from one product's matrices to the next
};

// The operation on c before it is written.
enum class Epilogue : uint8_t { none, bias, gelu_tanh, bias_gelu_tanh };

// Writes c, or adds to it. float computes in full precision, or in TF32 where set_tf32() allows it; bf16 sums
// in float. The same sizes give the same bits: algorithms that add in the order of arrival are excluded.
template <class T> void multiply(const MatrixProduct& product, const T* a, const T* b, T* c, bool add);

// Writes c with an epilogue, which may read bias [n]. Returns false, and does nothing, where cuBLASLt has no
// algorithm for it, as for some types and alignments.
template <class T>
bool multiply_with(Epilogue epilogue, const MatrixProduct& product, const T* a, const T* b, T* c,
                   const T* bias);

// Writes c in the type in which the products are summed. All sizes are positive.
template <class T> void multiply_wide(const MatrixProduct& product, const T* a, const T* b, Wide<T>* c);

// allow_tf32() of engine/core/replay.h.
void set_tf32(bool allowed);

}  // namespace tessera
