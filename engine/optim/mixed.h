#pragma once

#include <utility>
#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

// Mixed precision (Micikevicius et al., 2018, with bf16, which needs no scaling of the loss): a model
// computes with bf16 weights, while the optimizer moves f32 ones by the widened gradients. Small steps are
// not lost to rounding so, and all that is saved is f32.
class MixedWeights {
 public:
  // Pairs of an f32 leaf that is optimized and a bf16 leaf of as many elements that computes. Fails for
  // others.
  explicit MixedWeights(std::vector<std::pair<Tensor, Tensor>> pairs);

  // The bf16 weights become the f32 ones, rounded to nearest: before a forward pass.
  void narrow() const;
  // Adds the bf16 leaves' gradients to those of the f32 leaves, in f32; after zero_grad() of these it writes
  // them. Called after the backward pass of each part of a batch. A leaf without a gradient adds none.
  void widen_gradients() const;

 private:
  std::vector<std::pair<Tensor, Tensor>> pairs_;
};

}  // namespace tessera
