#pragma once

#include <string>

#include "engine/nn/scope.h"
#include "engine/ops/activations.h"

namespace tessera {

/// y = f(x W^T + b), where f is the identity or an activation. weight [out, in], bias [out].
struct Linear {
  struct Options {
    bool bias = true;
    Init weight_init = nullptr;  ///< null: weight and bias start by the scope's rule
    Init bias_init = nullptr;    ///< where weight_init is given; null: 0
  };

  Linear() = default;
  Linear(const Scope& scope, int64_t in, int64_t out, const Options& options);
  Linear(const Scope& scope, int64_t in, int64_t out) : Linear(scope, in, out, Options()) {}

  Tensor operator()(const Tensor& x,
                    Activation activation = Activation::none) const;  ///< [..., in] -> [..., out]

  /// The layer of outputs [first, first + count) alone, whose gradients reach this layer's weights.
  Linear part(int64_t first, int64_t count) const;

  Tensor weight, bias;  ///< no bias: undefined
  std::string path;
};

}  // namespace tessera
