#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/core/device.h"
#include "engine/io/json.h"

namespace tessera {

struct ModelCheckOptions {
  int64_t batch = 2;    // images
  int64_t entries = 2;  // random entries of each parameter whose derivatives are checked one by one
  uint64_t seed = 0;
};

// The largest difference between one parameter's gradient and central differences, relative to the gradient's
// largest value.
struct ParameterError {
  std::string name;
  int64_t elements = 0;
  double error = 0;
};

// Checks the gradients of a whole model in double against central differences, for every parameter, in single
// entries and along one random direction that moves all entries. The function is the sum of the logits of
// random images, weighted by a random cotangent. The gradients are computed on the device, the differences on
// the CPU. The weights are perturbed first, because some gradients vanish at the initial values; drop path
// and dropout are off.
std::vector<ParameterError> check_model(const Json& config, const ModelCheckOptions& options,
                                        Device device = Device::cpu);

// The largest error that counts as agreement. Rounding and the truncation error of the differences stay two
// orders of magnitude below it.
inline constexpr double model_check_tolerance = 1e-6;

}  // namespace tessera
