#pragma once

#include "engine/core/dtype.h"

namespace tessera {

// Measured rates in GFLOP/s with all threads: `blas` of gemm() on square matrices, one product a thread;
// `linear` of the linear op's kernel on one tall product. Each is the best of the repeats in half a second,
// in f64 for f64 and in f32 for any other type.
struct GemmPeak {
  double blas = 0, linear = 0;
};
GemmPeak measure_gemm_peaks(DType dtype);

// The larger of the two, which stands for the machine's peak even where OpenBLAS has no kernels for it.
double measure_gemm_peak(DType dtype);

}  // namespace tessera
