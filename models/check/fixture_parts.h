#pragma once

#include <functional>
#include <string>

#include "engine/io/json.h"
#include "engine/nn/parameters.h"
#include "models/model.h"

namespace tessera {

// A piece of a model that has a fixture of its own, such as the decay or the spatial prior.
struct Part {
  Parameters parameters;
  // Computes the outputs by name from the file's inputs by name.
  std::function<TensorMap(const TensorMap& inputs)> outputs;
  // The output whose gradient is the file's `grad_output`; empty for a part without gradients.
  std::string weighted_output;
};

// Builds the part that `config` describes; "part" names it. Fails for an unknown name.
Part build_part(const Json& config, DType dtype, Device device = Device::cpu);

}  // namespace tessera
