#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/core/device.h"
#include "engine/io/json.h"

namespace tessera {

struct ModelCheckOptions {
  int64_t batch = 2;    // images
  int64_t entries = 2;  // of each parameter, drawn at random, whose derivative is checked on its own
  uint64_t seed = 0;
};

// How far one parameter's gradient is from central differences, relative to the gradient's largest value.
struct ParameterError {
  std::string name;
  int64_t elements = 0;
  double error = 0;
};

// Checks the gradients of a whole model in double: of the logits of random images, weighed by a random
// cotangent, for every parameter, in single entries and along one random direction that moves all entries.
// The gradients are those of the device, the differences the CPU's. The weights are moved away from their
// initial values, where some gradients vanish; drop path and dropout rest.
std::vector<ParameterError> check_model(const Json& config, const ModelCheckOptions& options,
                                        Device device = Device::cpu);

// What an error may be. Rounding and the differences' own error stay below it by two orders of magnitude.
inline constexpr double model_check_tolerance = 1e-6;

}  // namespace tessera
