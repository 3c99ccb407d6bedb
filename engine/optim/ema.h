#pragma once

#include <string>

#include "engine/core/named_tensors.h"

namespace tessera {

/// The exponential moving average e of a model's weights p with decay d (averaging of weights: Polyak and
/// Juditsky, 1992). It starts as e = p; each update does
///   e <- d e + (1 - d) p
class Ema {
 public:
  /// Averages `values`: parameters, and buffers such as running statistics. Fails unless all are f32 or all
  /// are f64, on one device, and 0 <= d < 1.
  Ema(const NamedTensors& values, double d);

  void update() { update({}); }  ///< call it after the optimizer's step
  /// Updates if norm [1] (f64, on the values' device) is finite, as Optimizer::step does.
  void update(const Tensor& norm);

  /// Exchanges weights and averages. Call it to evaluate with the averages, and again to go on training.
  void swap() const;

  /// The averages under the names of the weights, to save or to load into a model. They share this object's
  /// memory.
  const NamedTensors& state() const { return averages_; }
  void load_state(const NamedTensors& state, const std::string& where) const;  ///< errors as in state.h

 private:
  NamedTensors values_, averages_;
  double d_;
};

}  // namespace tessera
