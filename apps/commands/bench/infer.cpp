#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/model_bench.h"
#include "apps/options/options.h"
#include "apps/reporting/measuring.h"
#include "apps/reporting/table.h"
#include "engine/core/frozen_weights.h"
#include "engine/core/parallel.h"

namespace tessera {

namespace {

constexpr Column columns[] = {
    {"model", "model"},
    {"batch", "batch", as_integer},
    {"dtype", "type"},
    {"threads", "threads", as_integer},
    {"images_per_second", "images/s", as_rate},
    {"batch_seconds", "a batch", as_seconds},
    {"best_batch_seconds", "the best", as_seconds},
    {"gflops", "GFLOP/s", as_rate},
    {"gemm_peak_gflops", "GEMM peak", as_rate},
    {"share_of_peak", "share of peak", as_percent},
    {"peak_memory_bytes", "peak memory", as_bytes},
};

ExitCode bench_infer(const ModelBench& bench) {
  const Json config = bench.source.config();
  const Model model = bench.build_model(config);
  const Tensor images = bench.images(model);
  const FrozenWeights frozen(model.parameters.state());
  Pass pass{.answer_only = true};
  const Measured measured = measure(bench, [&] {
    const Tensor logits = model.logits(images, pass);
    if (bench.device != Device::cpu) logits.to(Device::cpu);  // waits for it
  });
  const auto batch = static_cast<double>(bench.batch);
  const double gflops = 2e-9 * static_cast<double>(cost_of(config, bench.device == Device::cpu).macs) *
                        batch / measured.seconds;
  const Json row{{"model", bench.source.name()},
                 {"device", name(bench.device)},
                 {"batch", bench.batch},
                 {"dtype", name(bench.dtype)},
                 {"threads", threads()},
                 {"images_per_second", batch / measured.seconds},
                 {"batch_seconds", measured.seconds},
                 {"best_batch_seconds", measured.best_seconds},
                 {"gflops", gflops},
                 {"gemm_peak_gflops", measured.gemm_peak_gflops},
                 {"share_of_peak", gflops / measured.gemm_peak_gflops},
                 {"peak_memory_bytes", peak_memory_bytes(bench.device)}};
  print_record(columns, row, bench.json);
  return ExitCode::done;
}

}  // namespace

void add_bench_infer(Command& bench) {
  Command& command =
      add_command(bench, "infer", "A forward pass in evaluation: images a second, share of the GEMM peak.",
                  {"tessera bench infer --model sl-vit --batch 256 --json"});
  const auto options = std::make_shared<ModelBench>();
  options->add_to(command, {DType::f32, DType::f64, DType::bf16});
  on_run(command, [options] { return bench_infer(*options); });
}

}  // namespace tessera
