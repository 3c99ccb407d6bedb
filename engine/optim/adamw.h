#pragma once

#include "engine/optim/optimizer.h"

namespace tessera {

/// AdamW (Loshchilov and Hutter, 2019; Adam: Kingma and Ba, 2015). Step t = 1, 2, ... with gradient g,
/// learning rate eta and weight decay lambda does
///   p <- (1 - eta lambda) p
///   m <- beta1 m + (1 - beta1) g            m^ = m / (1 - beta1^t)
///   v <- beta2 v + (1 - beta2) g^2          v^ = v / (1 - beta2^t)
///   p <- p - eta m^ / (sqrt(v^) + eps)
/// where t counts the steps in which the parameter had a gradient, as in PyTorch.
class AdamW : public Optimizer {
 public:
  struct Options {
    double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  };

  /// Fails as Optimizer does, and unless 0 <= beta < 1 and eps >= 0.
  AdamW(const std::vector<ParameterGroup>& groups, const Options& options);
  explicit AdamW(const std::vector<ParameterGroup>& groups) : AdamW(groups, Options()) {}

  void undo_step_count() override { count(-1); }
  NamedTensors state() const override;  ///< m.NAME, v.NAME and step.NAME (t, i64 [1]) of each parameter

 private:
  void update(double lr, const Tensor& norm) override;
  void count(int64_t steps);  ///< adds `steps` to t of each parameter that has a gradient

  Options options_;
  std::vector<Tensor> m_, v_;
  Tensor steps_;  ///< t of each parameter, i64, on the host
};

}  // namespace tessera
