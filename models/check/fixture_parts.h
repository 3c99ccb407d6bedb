#pragma once

#include <functional>
#include <string>

#include "engine/io/json.h"
#include "engine/nn/parameters.h"
#include "models/model.h"

namespace tessera {

// A piece of a model that has reference values of its own (reference/fixture_parts.py).
struct Part {
  Parameters parameters;
  // Its outputs by name, from the file's inputs ("input" and what else it holds).
  std::function<TensorMap(const TensorMap& inputs)> outputs;
  // The output that the file's `grad_output` weighs; empty for a part that has no gradient.
  std::string weighed;
};

// The part that `config` describes ("part" names it). Fails for an unknown one.
Part build_part(const Json& config, DType dtype, Device device = Device::cpu);

}  // namespace tessera
