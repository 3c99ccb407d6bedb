#pragma once

#include "engine/core/dtype.h"

namespace tessera {

// GFLOP/s with all threads at once, the best of half a second's repeats, in f64, or f32 for any other type:
// of gemm() on square matrices, each thread on its own; and of linear's own kernel on one tall product.
struct GemmPeak {
  double blas = 0, linear = 0;
};
GemmPeak measure_gemm_peaks(DType dtype);

// The larger of the two: the machine's peak, whatever kernels OpenBLAS was told to use.
double measure_gemm_peak(DType dtype);

}  // namespace tessera
