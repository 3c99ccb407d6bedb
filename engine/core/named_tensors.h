#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/core/tensor.h"

namespace tessera {

/// Tensors with their names, in order: parameters, an optimizer's state, the content of a checkpoint.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

}  // namespace tessera
