#pragma once

// What the parts of `tessera bench` share.

#include <chrono>
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

void add_bench_train(Command& bench);
void add_bench_infer(Command& bench);
void add_bench_loader(Command& bench);
void add_bench_run(Command& bench);
void add_bench_gemm(Command& bench);

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start_ = Clock::now();
};

double median(std::vector<double> values);

// The most memory that the process has had so far, in bytes; 0 where the system does not tell.
int64_t peak_memory_bytes();
// The same on the CPU; on a GPU the most that its tensors have taken.
int64_t peak_memory_bytes(Device device);
// Gives back what the engine keeps for later, and lets peak_memory_bytes() begin anew where the system can.
void reset_peak_memory();

// What bench train and bench infer take: the model, the batch, how often.
struct ModelBench {
  ModelSource source{"sl-vit", 32, 10};
  int64_t batch = 128, steps = 20, warmup = 3;
  DType dtype = DType::f32;
  std::optional<DType> products;  // their type where it is not dtype, as by --precision bf16
  Device device = Device::cpu;
  uint64_t seed = 0;
  bool json = false;
  bool graph = true;  // on a GPU

  Option* add_to(Command& command, const std::vector<DType>& dtypes);  // returns --model
  Model build_model(const Json& config) const;
  Tensor images(const Model& model) const;  // [B, C, H, W], standard normal
  Tensor labels(const Model& model) const;  // [B], a segmenter's [B, H, W]; any class
};

// How long one run of `step` takes: the median and the best of `steps`, after `warmup`. The CPU's GEMM peak
// is measured before, half way and after, so that whatever else the machine does meets both alike; a GPU's
// before.
struct Measured {
  double seconds, best_seconds;
  double gemm_peak_gflops;  // the largest
};
Measured measure(const ModelBench& bench, const std::function<void()>& step);

}  // namespace tessera
