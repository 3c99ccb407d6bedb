#include "apps/footprint.h"

#include "engine/autograd/tape.h"
#include "engine/core/dispatch.h"
#include "engine/core/storage.h"
#include "models/model.h"

namespace tessera {

namespace {

// The most that a forward and backward pass of `batch` images holds at once.
int64_t peak_of_step(const Model& model, int64_t batch) {
  const Tensor images = Tensor::empty({batch, model.in_channels(), model.image_size(), model.image_size()});
  const auto before = static_cast<int64_t>(memory_stats(Device::cpu).in_use);
  reset_peak(Device::cpu);
  Pass pass{.training = true};
  Tape tape;
  const Tensor logits = model.logits(images, pass);
  tape.backward(logits, Tensor::empty(logits.shape()));
  return static_cast<int64_t>(memory_stats(Device::cpu).peak) - before;
}

}  // namespace

Footprint footprint_of(const Json& config) {
  constexpr int64_t few = 64, many = 128;
  const DryRun dry;
  const Model model = build(config);
  Footprint footprint;
  for (const Parameter& parameter : model.parameters)
    footprint.weights += static_cast<int64_t>(parameter.value.bytes());
  peak_of_step(model, few);  // leaves the parameters' gradients behind, which do not grow with the batch
  footprint.activations = (peak_of_step(model, many) - peak_of_step(model, few)) / (many - few);
  release_cached(Device::cpu);
  return footprint;
}

}  // namespace tessera
