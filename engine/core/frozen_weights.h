#pragma once

#include "engine/core/named_tensors.h"

namespace tessera {

/// Promises that nobody changes these tensors while it lives. The CPU's kernels then keep what they make of a
/// weight, such as the panels that a product reads, and find it there at their next call: a forward pass of
/// one image takes a third of the time. It holds for all threads, takes about as much memory as the weights,
/// and gives it back at its end. Nobody may have changed a weight that another FrozenWeights holds at the
/// same time.
///
///   const FrozenWeights frozen(model.parameters.state());
///   for (const Tensor& images : batches) use(model.logits(images, pass));
class FrozenWeights {
 public:
  explicit FrozenWeights(NamedTensors weights);
  ~FrozenWeights();
  FrozenWeights(const FrozenWeights&) = delete;
  FrozenWeights& operator=(const FrozenWeights&) = delete;

 private:
  NamedTensors weights_;
};

}  // namespace tessera
