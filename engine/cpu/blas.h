#pragma once

// OpenBLAS, which is loaded by the first product that needs it: what multiplies no large matrices never
// touches it. Its settings are read while it loads, so they are made then: one thread, since TBB's threads
// call it, each for a tile; and the kernels of this kind of processor, because a release from before the
// processor takes those of an old one, at a tenth of the speed.

#include <cblas.h>

#include <string>

namespace tessera {

// LAPACK's dsyevd: eigenvalues and eigenvectors of a symmetric matrix.
using Dsyevd = void(const char* job, const char* triangle, const int* n, double* a, const int* stride,
                    double* values, double* work, const int* room, int* integers, const int* integer_room,
                    int* trouble);

struct Blas {
  decltype(&cblas_sgemm) sgemm;
  decltype(&cblas_dgemm) dgemm;
  Dsyevd* dsyevd;
  std::string core;  // the processor whose kernels it took, "SkylakeX"
};

// Fails where the library is not installed. What the environment sets of OPENBLAS_CORETYPE stays.
const Blas& blas();

}  // namespace tessera
