#include "engine/check/gemm_peak.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "engine/core/parallel.h"
#include "engine/cpu/gemm.h"
#include "engine/ops/linear_kernels.h"

namespace tessera {

namespace {

// The highest rate of repeats of run(), `flops` operations each, in GFLOP/s.
template <class Run> double best_rate(double flops, Run run) {
  constexpr double seconds = 0.5;
  const auto now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  double best = 0;
  for (const double start = now(); now() - start < seconds;) {
    const double begin = now();
    run();
    best = std::max(best, flops / (now() - begin) * 1e-9);
  }
  return best;
}

template <class T> GemmPeak peaks() {
  constexpr int64_t size = 1024, elements = size * size;
  const int64_t count = threads();
  std::vector<T> a(static_cast<size_t>(count * elements), T(0.5f)), b = a, c = a;
  const double flops = 2.0 * static_cast<double>(count * elements * size);
  [[maybe_unused]] const auto squares = [&](int64_t first, int64_t last) {
    for (int64_t at = first * elements; at < last * elements; at += elements)
      gemm<T>({size, size, size}, T(1), {a.data() + at, size}, {b.data() + at, size}, T(0), c.data() + at,
              size);
  };
  const LinearSize tall{count * size, size, size};
  const auto linear = [&] {
    LinearKernels<Cpu>::forward<T>(tall, a.data(), b.data(), nullptr, Activation::none, c.data(), nullptr);
  };
  if constexpr (std::is_same_v<T, bf16>)
    return {0, best_rate(flops, linear)};
  else
    return {best_rate(flops, [&] { parallel_for(count, 1, squares); }), best_rate(flops, linear)};
}

}  // namespace

GemmPeak measure_gemm_peaks(DType dtype) {
  return dtype == DType::f64 ? peaks<double>() : dtype == DType::bf16 ? peaks<bf16>() : peaks<float>();
}

double measure_gemm_peak(DType dtype) {
  const GemmPeak peak = measure_gemm_peaks(dtype);
  return std::max(peak.blas, peak.linear);
}

}  // namespace tessera
