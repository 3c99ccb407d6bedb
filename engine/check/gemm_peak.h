#pragma once

#include "engine/core/dtype.h"

namespace tessera {

// Measured rates in GFLOP/s with all threads: `blas` of gemm() on square matrices, one product a thread;
// `linear` of the linear op's kernel on one tall product. Each is the best of the repeats in half a second,
// in f32, f64 or bf16; BLAS has no rate in bf16.
struct GemmPeak {
  double blas = 0, linear = 0;
};
GemmPeak measure_gemm_peaks(DType dtype);

// The larger of the two, which stands for the machine's peak even where OpenBLAS has no kernels for it.
double measure_gemm_peak(DType dtype);

// How many times as fast as in f32 linear's products are in bf16, measured in some 30 ms; 0 where the
// processor has no instructions for bf16.
double bf16_speed();

}  // namespace tessera
