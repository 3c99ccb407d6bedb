#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

// Tensors by name, in an order that means something: parameters, an optimizer's state, a checkpoint.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

}  // namespace tessera
