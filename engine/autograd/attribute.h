#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

/// What an op was asked beside its inputs, by the name of the argument in the op's header: "axis" of softmax,
/// "eps" of layer_norm, "stride" of conv2d; a tensor for what was drawn or given without a gradient (the mask
/// of dropout, the index of gather).
struct Attribute {
  std::string name;
  std::variant<double, std::vector<int64_t>, std::string, Tensor> value;
};

using Attributes = std::vector<Attribute>;

}  // namespace tessera
