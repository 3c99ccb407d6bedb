// tessera bench gemm: the peak rate of matrix products, which other measurements are compared with.

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/commands/commands.h"
#include "apps/options/options.h"
#include "apps/reporting/table.h"
#include "engine/check/gemm_peak.h"
#include "engine/core/parallel.h"
#include "engine/cpu/gemm.h"

namespace tessera {

namespace {

constexpr Column columns[] = {
    {"dtype", "type"},
    {"threads", "threads", as_integer},
    {"gflops", "GFLOP/s", as_rate},
    {"gflops_per_thread", "a thread", as_rate},
    {"kernels", "kernels"},
};

ExitCode bench_gemm(bool json) {
  Json rows = Json::array();
  for (const DType dtype : {DType::f32, DType::f64}) {
    const GemmPeak peak = measure_gemm_peaks(dtype);
    const auto add = [&](double gflops, const std::string& kernels) {
      rows.push_back({{"dtype", name(dtype)},
                      {"threads", threads()},
                      {"gflops", gflops},
                      {"gflops_per_thread", gflops / threads()},
                      {"kernels", kernels}});
    };
    add(peak.blas, blas_kernels());
    add(peak.linear, "Tessera's linear");
  }
  print_rows(columns, rows, json);
  return ExitCode::done;
}

}  // namespace

void add_bench_gemm(Command& bench) {
  Command& command = add_command(
      bench, "gemm", "The machine's matrix product at its best: the peak that others are held to.",
      {"tessera bench gemm --threads 1"});
  const auto json = std::make_shared<bool>(false);
  add_threads(command);
  add_json(command, *json);
  on_run(command, [json] { return bench_gemm(*json); });
}

}  // namespace tessera
