#pragma once

#include <utility>
#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

// What a forward pass moves besides gradients, as batch norms their running statistics, in a step that may be
// left out afterwards: the other tensor of each pair is kept beside the model's own.
class Statistics {
 public:
  struct Pair {
    Tensor own;    // the model's, that are saved
    Tensor other;  // of the same shape
    // Whether it is the other that a forward pass moves, as where a copy of the model computes; else the
    // model's own are moved, and the other is what they were before.
    bool other_moves = false;
  };

  // Fails for tensors that are not f32 or f64, or not alike.
  explicit Statistics(std::vector<Pair> pairs);

  // Before a step: the others become the model's own.
  void begin_step() const;
  // After it: the model's own are those that the forward pass moved to, or where `norm` [1] f64, on their
  // device, is not finite (see clip_on_device), what they were before.
  void end_step(const Tensor& norm) const;

 private:
  std::vector<Pair> pairs_;
};

}  // namespace tessera
