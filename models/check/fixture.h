#pragma once

#include <string>

#include "engine/core/dtype.h"

namespace tessera {

// How far the engine is from a file of reference values.
struct Parity {
  double error = 0;     // the largest over the tensors: max |a - b| / max |b|
  std::string tensor;   // the one that has it
  size_t compared = 0;  // tensors
};

// Rebuilds what the fixture at `path` describes (a model or a part) in `dtype`, f32 or f64, runs it forward
// and backward on the device, and compares every output, loss and gradient that the file holds. A gradient
// whose largest difference is below the floor of reference/README.md (1e-6 of the file's largest gradient in
// f32, 1e-8 in f64) counts as equal. Fails for a file that cannot be read, or a model or part that is not
// known.
Parity check_fixture(const std::string& path, DType dtype, Device device = Device::cpu);

}  // namespace tessera
