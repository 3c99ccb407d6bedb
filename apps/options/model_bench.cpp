#include "apps/options/model_bench.h"

#include <algorithm>

#include "apps/options/options.h"
#include "apps/reporting/measuring.h"
#include "apps/training/task.h"
#include "engine/check/gemm_peak.h"
#include "engine/core/random.h"
#include "engine/core/storage.h"
#include "engine/ops/matmul.h"

namespace tessera {

Option* ModelBench::add_to(Command& command, const std::vector<DType>& dtypes) {
  Option* model = source.add_to(command, "--model");
  add_run_to(command, dtypes);
  return model;
}

void ModelBench::add_run_to(Command& command, const std::vector<DType>& dtypes) {
  const auto count = [&](const char* name, int64_t& value, const char* what) {
    command.add_option(name, value, what)->capture_default_str()->type_name("N")->check(positive());
  };
  count("--batch", batch, "Images a step");
  count("--steps", steps, "Steps that are timed; their median counts");
  command.add_option("--warmup", warmup, "Steps before them")
      ->check(non_negative())
      ->capture_default_str()
      ->type_name("N");
  add_dtype(command, dtype, dtypes);
  add_device(command, device);
  command.add_flag("!--no-graph", graph,
                   "On a GPU: launch every kernel of a step, do not replay a recorded one");
  add_threads(command);
  add_seed(command, seed);
  add_json(command, json);
}

Model ModelBench::build_model(const Json& config) const {
  return build(config, {.seed = seed, .dtype = dtype, .device = device});
}

Tensor ModelBench::images(const Model& model) const {
  const Tensor images = Tensor::empty({batch, model.in_channels(), model.image_size(), model.image_size()});
  Random random = Random(seed).split(1);
  for (int64_t i = 0; i < images.elements(); ++i)
    images.data<float>()[i] = static_cast<float>(random.normal());
  return images.to(dtype).to(device);
}

Tensor ModelBench::labels(const Model& model) const {
  const int64_t side = model.image_size();
  const bool by_pixel = task_of(model.config) == Task::segment;
  const Tensor labels = Tensor::empty(by_pixel ? Shape{batch, side, side} : Shape{batch}, DType::i64);
  Random random = Random(seed).split(2);
  for (int64_t i = 0; i < labels.elements(); ++i)
    labels.data<int64_t>()[i] = random.below(model.num_classes());
  return labels.to(device);
}

namespace {

constexpr int64_t peak_size = 8192;  // of a GPU's matrices

// Random numbers: a GPU multiplies equal ones faster.
const Tensor& peak_matrix() {
  static const Tensor matrix = [] {
    const Tensor a = Tensor::empty({peak_size, peak_size});
    for (int64_t i = 0; i < a.elements() / 4; ++i) {
      const auto words = philox(3, static_cast<uint64_t>(i));
      for (int64_t k = 0; k < 4; ++k)
        a.data<float>()[4 * i + k] = unit_float(words[static_cast<size_t>(k)]) - 0.5f;
    }
    return a;
  }();
  return matrix;
}

// Of the CPU's, or of products of two large matrices on the GPU, in GFLOP/s.
double gemm_peak(const ModelBench& bench) {
  if (bench.device == Device::cpu) return measure_gemm_peak(bench.products.value_or(bench.dtype));
  constexpr int64_t size = peak_size, products = 10;
  const Tensor a = peak_matrix().to(bench.products.value_or(bench.dtype)).to(bench.device);
  const auto run = [&] {
    Tensor y;
    for (int64_t i = 0; i < products; ++i) y = matmul(a, a);
    y.reshape({size * size}).rows(0, 1).item();  // waits for all of them
  };
  run();
  const Stopwatch watch;
  run();
  return 2e-9 * static_cast<double>(products * size * size * size) / watch.seconds();
}

}  // namespace

Measured measure(const ModelBench& bench, const std::function<void()>& step) {
  const bool shared = bench.device == Device::cpu;
  Measured measured{0, 0, gemm_peak(bench)};
  if (!shared) {  // the peak of memory is to be the steps' own
    release_cached(bench.device);
    reset_peak(bench.device);
  }
  for (int64_t i = 0; i < bench.warmup; ++i) step();
  std::vector<double> seconds;
  for (int64_t i = 0; i < bench.steps; ++i) {
    const Stopwatch watch;
    step();
    seconds.push_back(watch.seconds());
    if (shared && i == bench.steps / 2)
      measured.gemm_peak_gflops = std::max(measured.gemm_peak_gflops, gemm_peak(bench));
  }
  if (shared) measured.gemm_peak_gflops = std::max(measured.gemm_peak_gflops, gemm_peak(bench));
  measured.seconds = median(seconds);
  measured.best_seconds = *std::min_element(seconds.begin(), seconds.end());
  return measured;
}

}  // namespace tessera
