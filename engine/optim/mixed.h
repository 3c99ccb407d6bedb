#pragma once

#include <span>
#include <utility>
#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

/// Mixed precision (Micikevicius et al., 2018; bf16 needs no scaling of the loss). A model computes with bf16
/// weights, while the optimizer updates f32 weights by the gradients converted to f32. So small steps are not
/// lost to rounding, and everything that is saved is f32.
class MixedWeights {
 public:
  /// Each pair is an f32 leaf, which the optimizer updates, and the bf16 leaf of the same shape that the
  /// model computes with. Fails for other types or shapes, and for tensors that are no leaves.
  explicit MixedWeights(std::vector<std::pair<Tensor, Tensor>> pairs);

  /// Sets the bf16 weights to the f32 ones, rounded to nearest. Call it before a forward pass.
  void narrow() const;
  /// Adds the bf16 leaves' gradients to those of the f32 leaves, in f32; overwrites them after zero_grad() of
  /// the f32 leaves. Call it after the backward pass of each micro-batch. A leaf without a gradient adds
  /// nothing.
  void widen_gradients() const;
  void widen_gradient(size_t pair) const;  ///< the same for the pair of this number alone
  /// Makes the bf16 leaves' gradients those of the f32 leaves, without a copy: optimizers and norms read them
  /// as they are, so that a step has the same bits, and saves some time and memory. Call it instead of
  /// widen_gradients() where there is one micro-batch and nothing writes to the gradients (clipping does).
  /// Fails after a widen_gradients() since zero_grad() of the f32 leaves.
  void lend_gradients() const;

 private:
  void widen(std::span<const std::pair<Tensor, Tensor>> pairs) const;

  std::vector<std::pair<Tensor, Tensor>> pairs_;
};

}  // namespace tessera
