#pragma once

#include <string>

#include "engine/core/named_tensors.h"

namespace tessera {

// The exponential moving average of a model's weights (Polyak and Juditsky, 1992, with a decay d). It starts
// as the weights are; each update:
//   e <- d e + (1 - d) p
class Ema {
 public:
  // Averages of `values`: parameters, and the buffers that belong to them. Fails unless all are f32 or all
  // are f64, on one device, and 0 <= d < 1.
  Ema(const NamedTensors& values, double d);

  void update() { update({}); }  // after the optimizer's step
  // The same where `norm` [1] f64, on the values' device, is finite, as in Optimizer::step.
  void update(const Tensor& norm);

  // Exchanges weights and averages: call it to evaluate with the averages, and again to go on training.
  void swap() const;

  // The averages under the names of the weights: to save, or to load into a model. They share its memory.
  const NamedTensors& state() const { return averages_; }
  void load_state(const NamedTensors& state, const std::string& where) const;  // errors as in state.h

 private:
  NamedTensors values_, averages_;
  double d_;
};

}  // namespace tessera
