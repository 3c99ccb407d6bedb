#pragma once

#include <string>

#include "engine/io/json.h"

namespace tessera {

/// The graph of a model's training step, from two images to the loss, as the bytes of a GraphDef, which
/// TensorBoard draws: a node for each parameter, constant and op, under the names of tessera inspect with a
/// slash for each dot, so that modules are boxes; each with its shape. `config` is the whole config of a
/// model. Found by a dry run, which computes no number.
std::string graph_of(const Json& config);

}  // namespace tessera
