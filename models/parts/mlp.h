#pragma once

#include "engine/nn/linear.h"

namespace tessera {

/// fc2(gelu(fc1(x))), with the exact gelu unless another activation is given.
struct Mlp {
  Mlp() = default;
  Mlp(const Scope& scope, int64_t dim, int64_t hidden, Activation its_activation = Activation::gelu)
      : fc1(scope / "fc1", dim, hidden), fc2(scope / "fc2", hidden, dim), activation(its_activation) {}

  Tensor operator()(const Tensor& x) const { return fc2(fc1(x, activation)); }  ///< [..., D] -> [..., D]

  Linear fc1, fc2;
  Activation activation = Activation::gelu;
};

}  // namespace tessera
