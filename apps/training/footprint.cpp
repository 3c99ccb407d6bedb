#include "apps/training/footprint.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/core/storage.h"
#include "engine/optim/adamw.h"

namespace tessera {

namespace {

int64_t in_use() { return static_cast<int64_t>(memory_stats(Device::cpu).in_use); }

// The peak memory of a forward and a backward pass of `batch` images.
int64_t peak_of_passes(const Model& model, int64_t batch) {
  const TensorMap inputs = dry_inputs(model, batch);
  const int64_t before = in_use();
  reset_peak(Device::cpu);
  Pass pass{.training = true, .answer_only = true};
  Tape tape;
  tape.backward(model.training_loss(inputs, {}, pass).loss);
  return static_cast<int64_t>(memory_stats(Device::cpu).peak) - before;
}

int64_t bytes_of_weights(const Model& model) {
  int64_t bytes = 0;
  for (const Parameter& p : model.parameters) bytes += static_cast<int64_t>(p.value.bytes());
  return bytes;
}

}  // namespace

TensorMap dry_inputs(const Model& model, int64_t batch) {
  const int64_t side = model.image_size();
  const bool by_pixel = model.config.at("arch") == "segment";
  const Tensor target = Tensor::empty(by_pixel ? Shape{batch, side, side} : Shape{batch}, DType::i64);
  std::fill_n(target.data<int64_t>(), target.elements(), 0);  // some losses read it even in a dry run
  return {{"input", Tensor::empty({batch, model.in_channels(), side, side})}, {"target", target}};
}

StepMemory step_memory_of(const Json& config, int64_t batch) {
  const DryRun dry;
  StepMemory memory;
  {
    const Model model = build(config);
    memory.weights = bytes_of_weights(model);
    int64_t before = in_use();
    const AdamW optimizer(make_groups(trainable(model.parameters), 0));
    memory.optimizer = in_use() - before;
    before = in_use();
    peak_of_passes(model, batch);
    memory.gradients = in_use() - before;
    memory.activations = peak_of_passes(model, batch);
  }
  release_cached(Device::cpu);
  return memory;
}

Footprint footprint_of(const Json& config) {
  constexpr int64_t few = 64, many = 128;
  const DryRun dry;
  Footprint footprint;
  {
    const Model model = build(config);
    footprint.weights = bytes_of_weights(model);
    peak_of_passes(model, few);  // makes the parameters' gradients, which do not grow with the batch
    footprint.activations = (peak_of_passes(model, many) - peak_of_passes(model, few)) / (many - few);
  }
  release_cached(Device::cpu);
  return footprint;
}

}  // namespace tessera
