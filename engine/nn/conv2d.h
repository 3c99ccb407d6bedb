#pragma once

#include <string>

#include "engine/nn/scope.h"
#include "engine/ops/conv.h"

namespace tessera {

/// A convolution over maps whose channels are the last axis (engine/ops/conv.h). weight [out, in, k, k], or
/// [out, 1, k, k] if depthwise; bias [out]. Both start as PyTorch's do, uniform in +-1/sqrt(fan_in). Where
/// weight_init is given, the weight starts by it and the bias starts at 0.
struct Conv2d {
  struct Options {
    int64_t stride = 1, padding = 0;
    bool bias = true, depthwise = false;
    Init weight_init = nullptr;
  };

  Conv2d() = default;
  Conv2d(const Scope& scope, int64_t in, int64_t out, int64_t kernel, const Options& options);

  Tensor operator()(const Tensor& x) const;  ///< [B, H, W, in] -> [B, H', W', out]

  Tensor weight, bias;  ///< no bias: undefined
  ConvOptions convolution;
  bool depthwise = false;
  std::string path;
};

}  // namespace tessera
