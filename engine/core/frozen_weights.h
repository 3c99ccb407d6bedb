#pragma once

#include "engine/core/named_tensors.h"

namespace tessera {

/// Promises that nobody changes these tensors while it lives. The CPU's kernels then keep what they make of a
/// weight, such as the panels that a product reads, and find it there at their next call: a forward pass of
/// one image by lvvit-s takes 0.6 to 0.7 of the time. The promise holds for all threads. What is kept takes
/// about as much memory as the weights, which is given back when the last FrozenWeights that holds a weight
/// ends. Undefined tensors, such as the bias of a layer that has none, are passed over.
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
