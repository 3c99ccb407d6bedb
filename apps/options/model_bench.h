#pragma once

// What `tessera bench train` and `tessera bench infer` have in common: their options, inputs and measurement.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "apps/options/command.h"
#include "apps/options/model_source.h"
#include "engine/core/dtype.h"
#include "engine/core/tensor.h"
#include "models/model.h"

namespace tessera {

// The options: the model, the batch, the number of steps.
struct ModelBench {
  ModelSource source{"sl-vit", 32, 10};
  int64_t batch = 128, steps = 20, warmup = 3;
  DType dtype = DType::f32;
  std::optional<DType> products;  // type of matrix products, where it differs from dtype: --precision bf16
  Device device = Device::cpu;
  uint64_t seed = 0;
  bool json = false;
  bool graph = true;  // on a GPU: replay a recorded step

  Option* add_to(Command& command, const std::vector<DType>& dtypes);   // returns --model
  void add_run_to(Command& command, const std::vector<DType>& dtypes);  // all but the model
  Model build_model(const Json& config) const;
  Tensor images(const Model& model) const;  // [B, C, H, W], standard normal
  Tensor labels(const Model& model) const;  // [B], a segmenter's [B, H, W]; any class
};

// Times `step`: the median and the best of `steps` runs, after `warmup` runs. The CPU's GEMM peak is measured
// before, halfway and after, so that other load on the machine affects both; a GPU's is measured before.
struct Measured {
  double seconds, best_seconds;
  double gemm_peak_gflops;  // the largest of the measured peaks
};
Measured measure(const ModelBench& bench, const std::function<void()>& step);

}  // namespace tessera
