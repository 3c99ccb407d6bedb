#pragma once

#include <utility>
#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

/// Buffers that a forward pass updates, such as batch norms' running statistics, in a step that may be
/// skipped after the pass has run. Each buffer has a second tensor, so that both values exist until the norm
/// of the gradients decides between them.
class Statistics {
 public:
  struct Pair {
    Tensor own;    ///< the model's buffer, which is saved
    Tensor other;  ///< the second tensor, of the same shape
    /// Whether the forward pass updates `other` (where a bf16 copy of the model computes) rather than `own`
    /// (then `other` holds the value before the step).
    bool other_moves = false;
  };

  /// Fails for tensors that are not f32 or f64, or not alike.
  explicit Statistics(std::vector<Pair> pairs);

  /// Copies every `own` to its `other`. Call it before the forward pass.
  void begin_step() const;
  /// Sets every `own` to the value after the forward pass if norm [1] (f64, on their device, see
  /// clip_on_device) is finite, and else to the value before it.
  void end_step(const Tensor& norm) const;

 private:
  std::vector<Pair> pairs_;
};

}  // namespace tessera
