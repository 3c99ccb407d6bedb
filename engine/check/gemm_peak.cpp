#include "engine/check/gemm_peak.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "engine/core/parallel.h"
#include "engine/cpu/bf16_gemm.h"
#include "engine/cpu/gemm.h"
#include "engine/ops/linear_kernels.h"

namespace tessera {

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The highest rate of repeats of run(), `flops` operations each, in GFLOP/s.
template <class Run> double best_rate(double flops, Run run) {
  constexpr double seconds = 0.5;
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
  if constexpr (std::is_same_v<T, bf16>) {
    return {0, best_rate(flops, linear)};
  } else {
    load_gemm<T>();
    return {best_rate(flops, [&] { parallel_for(count, 1, squares); }), best_rate(flops, linear)};
  }
}

// One product of linear on all threads, of a few milliseconds.
template <class T> class SmallProduct {
 public:
  // Its seconds.
  double run() {
    const double begin = now();
    LinearKernels<Cpu>::forward<T>({rows_, size, size}, x_.data(), weight_.data(), nullptr, Activation::none,
                                   y_.data(), nullptr);
    return now() - begin;
  }

 private:
  static constexpr int64_t size = 512;
  int64_t rows_ = int64_t{288} * threads();
  std::vector<T> x_ = std::vector<T>(static_cast<size_t>(rows_ * size), T(0.5f)), y_ = x_,
                 weight_ = std::vector<T>(static_cast<size_t>(size * size), T(0.5f));
};

}  // namespace

GemmPeak measure_gemm_peaks(DType dtype) {
  return dtype == DType::f64 ? peaks<double>() : dtype == DType::bf16 ? peaks<bf16>() : peaks<float>();
}

double bf16_speed() {
  if (!bf16_kernels()) return 0;
  SmallProduct<float> wide;
  SmallProduct<bf16> narrow;
  double wide_best = 1e9, narrow_best = 1e9;
  for (int turn = 0; turn < 8; ++turn) {
    wide_best = std::min(wide_best, wide.run());
    narrow_best = std::min(narrow_best, narrow.run());
  }
  return wide_best / narrow_best;
}

double measure_gemm_peak(DType dtype) {
  const GemmPeak peak = measure_gemm_peaks(dtype);
  return std::max(peak.blas, peak.linear);
}

}  // namespace tessera
