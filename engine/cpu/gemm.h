#pragma once

// Matrix products on the CPU: single-threaded OpenBLAS calls, and oneTBB's parallelism above them.

#include <cstdint>
#include <string>

#include "engine/core/dtype.h"

namespace tessera {

// C = alpha op(A) op(B) + beta C in the calling thread, row-major: op(A) [m, k], op(B) [k, n], C [m, n],
// where op transposes if asked, and lda, ldb, ldc are the distances between rows in memory. T is float,
// double or bf16; C may be a T or a Wide<T>. beta = 0 writes C without reading it.
template <class T, class C>
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, Wide<T> alpha, const T* a, int64_t lda,
          const T* b, int64_t ldb, Wide<T> beta, C* c, int64_t ldc);

// The same on all threads, C always a T. The cut into tiles depends on the sizes alone, and so do the bits.
template <class T>
void parallel_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, Wide<T> alpha, const T* a,
                   int64_t lda, const T* b, int64_t ldb, Wide<T> beta, T* c, int64_t ldc);

// OpenBLAS and the kernels that it has chosen, or OPENBLAS_CORETYPE for it: "OpenBLAS SkylakeX".
std::string blas_kernels();

}  // namespace tessera
