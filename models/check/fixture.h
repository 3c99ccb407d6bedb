#pragma once

#include <string>

#include "engine/core/dtype.h"

namespace tessera {

// The largest difference between the engine and a file of reference values.
struct Parity {
  double error = 0;     // the largest of all tensors' max |a - b| / max |b|, b being the file's
  std::string tensor;   // the tensor with that error
  size_t compared = 0;  // number of tensors
};

// Rebuilds what the fixture at `path` describes (a model or a part) in `dtype`, f32 or f64, runs it forward
// and backward on the device, and compares every output, loss and gradient that the file holds. Some
// gradients are zero but for rounding, such as that of a bias in front of a batch norm; so a gradient counts
// as equal if max |a - b| is at most 1e-6 (f32) or 1e-8 (f64) of the file's largest gradient. Fails for a
// file that cannot be read, an unknown model or part, and tensors that the engine does not compute.
// models/check/README.md describes the file format.
Parity check_fixture(const std::string& path, DType dtype, Device device = Device::cpu);

// The largest error of a fixture that counts as agreement: 1e-4 in f32, 1e-6 in f64.
double parity_tolerance(DType dtype);

}  // namespace tessera
