#pragma once

#include "engine/optim/optimizer.h"

namespace tessera {

/// Stochastic gradient descent with momentum mu (Sutskever et al., 2013, in PyTorch's form). A step with
/// gradient g, learning rate eta and weight decay lambda does
///   d <- g + lambda p
///   b <- mu b + d                           where b starts at 0
///   p <- p - eta b,  or with Nesterov's momentum  p - eta (d + mu b)
class Sgd : public Optimizer {
 public:
  struct Options {
    double momentum = 0;
    bool nesterov = false;
  };

  /// Fails as Optimizer does, unless 0 <= momentum < 1, and for nesterov without momentum.
  Sgd(const std::vector<ParameterGroup>& groups, const Options& options);
  explicit Sgd(const std::vector<ParameterGroup>& groups) : Sgd(groups, Options()) {}

  NamedTensors state() const override;  ///< b.NAME of each parameter; nothing without momentum

 private:
  void update(double lr, const Tensor& norm) override;

  Options options_;
  std::vector<Tensor> b_;  ///< empty without momentum
};

}  // namespace tessera
