#pragma once

#include <functional>
#include <string>

#include "engine/io/json.h"
#include "engine/nn/parameters.h"

namespace tessera {

// A piece of a model that has reference values of its own (reference/fixture_parts.py).
struct Part {
  Parameters parameters;
  std::string output_name;
  std::function<Tensor(const Tensor& input)> output;  // `input` is undefined for a part that takes none
};

// The part that `config` describes ("part" names it: spatial_prior, decay). Fails for an unknown one.
Part build_part(const Json& config, DType dtype);

}  // namespace tessera
