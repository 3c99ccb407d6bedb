#pragma once

// Matrix products on the CPU: single-threaded calls of OpenBLAS, or of the kernels of bf16_gemm.h where the
// processor has them, and oneTBB's parallelism above them.

#include <cstdint>
#include <string>

#include "engine/core/dtype.h"

namespace tessera {

struct GemmSize {
  int64_t m, n, k;
};

// A factor of a product where it lies, row-major: `stride` elements from one row to the next in memory; op()
// transposes it where asked.
template <class T> struct Factor {
  const T* data;
  int64_t stride;
  bool transposed = false;

  // op(this) from row i and column j on.
  Factor from(int64_t i, int64_t j) const {
    return {data + (transposed ? j * stride + i : i * stride + j), stride, transposed};
  }
};

// C = alpha op(A) op(B) + beta C in the calling thread: op(A) [m, k], op(B) [k, n], C [m, n] with `ldc`
// elements from row to row. T is float, double or bf16; C holds T or Wide<T>. beta = 0 writes C without
// reading it. Fails for a size that BLAS's integers cannot hold.
template <class T, class C>
void gemm(const GemmSize& size, Wide<T> alpha, Factor<T> a, Factor<T> b, Wide<T> beta, C* c, int64_t ldc);

// Loads the library that gemm() calls for this type, if any. Threads that call gemm() side by side need it
// loaded before, because loading sets the process's environment.
template <class T> void load_gemm();

// gemm() on all threads. The sizes alone decide how it is cut into tiles, so the bits do not depend on the
// thread count. In a DryRun it allocates its workspace alone.
template <class T, class C>
void parallel_gemm(const GemmSize& size, Wide<T> alpha, Factor<T> a, Factor<T> b, Wide<T> beta, C* c,
                   int64_t ldc);

// OpenBLAS and the kernels it chose for this processor (or OPENBLAS_CORETYPE named): "OpenBLAS SkylakeX".
std::string blas_kernels();

}  // namespace tessera
