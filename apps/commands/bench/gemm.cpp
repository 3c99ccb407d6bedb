// tessera bench gemm: the peak rate of matrix products, which other measurements are compared with.

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/commands/commands.h"
#include "apps/options/options.h"
#include "apps/reporting/table.h"
#include "engine/check/gemm_peak.h"
#include "engine/core/parallel.h"
#include "engine/cpu/bf16_gemm.h"
#include "engine/cpu/gemm.h"
#include "engine/cpu/processor.h"

namespace tessera {

namespace {

constexpr Column columns[] = {
    {"dtype", "type"},
    {"threads", "threads", as_integer},
    {"gflops", "GFLOP/s", as_rate},
    {"gflops_per_thread", "a thread", as_rate},
    {"kernels", "kernels"},
};

// The kernels that linear has for a type; bf16 without instructions of its own takes those of f32.
std::string linear_kernels(DType dtype) {
  const std::string linear = "Tessera's linear, ";
  if (dtype != DType::bf16) return linear + kernels_in_use();
  return linear + (bf16_kernels() ? bf16_kernels()->name : "widened to f32");
}

// What training in bf16 costs where the processor has no instructions for it.
void say_if_bf16_is_slow() {
  if (!bf16_kernels())
    fmt::print(
        "bf16 is slower than f32 here: this processor has neither AVX-512-BF16 nor AMX-BF16, so that its "
        "numbers are widened to f32 first.\n");
}

ExitCode bench_gemm(bool json) {
  Json rows = Json::array();
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    const GemmPeak peak = measure_gemm_peaks(dtype);
    const auto add = [&](double gflops, const std::string& kernels) {
      rows.push_back({{"dtype", name(dtype)},
                      {"threads", threads()},
                      {"gflops", gflops},
                      {"gflops_per_thread", gflops / threads()},
                      {"kernels", kernels}});
    };
    if (dtype != DType::bf16) add(peak.blas, blas_kernels());
    add(peak.linear, linear_kernels(dtype));
  }
  print_rows(columns, rows, json);
  if (!json) say_if_bf16_is_slow();
  return ExitCode::done;
}

}  // namespace

void add_bench_gemm(Command& bench) {
  Command& command = add_command(
      bench, "gemm", "The machine's matrix product at its best: the peak that others are held to.",
      {"tessera bench gemm --threads 1", "TESSERA_CPU=avx2 tessera bench gemm"},
      "The kernels are those of this processor, or of an older kind that TESSERA_CPU names:\n"
      "any, avx2, avx512, avx512bf16, amx.");
  const auto json = std::make_shared<bool>(false);
  add_threads(command);
  add_json(command, *json);
  on_run(command, [json] { return bench_gemm(*json); });
}

}  // namespace tessera
