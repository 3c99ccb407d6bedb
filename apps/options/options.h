#pragma once

// The options that mean the same in every command that has them.

#include <cstdint>
#include <vector>

#include "apps/options/command.h"
#include "apps/options/validators.h"
#include "apps/training/precision.h"
#include "engine/core/device.h"
#include "engine/core/dtype.h"

namespace tessera {

// --threads N: takes effect at once; 0 is all cores, which is the default too.
void add_threads(Command& command);
// --device cpu|cuda: fails where this build or this machine does not have it.
void add_device(Command& command, Device& device);
// --dtype: one of `allowed`.
void add_dtype(Command& command, DType& dtype, const std::vector<DType>& allowed);
// --precision f32|tf32|bf16. Fails for any other.
void add_precision(Command& command, Precision& precision);
// --seed N.
Option* add_seed(Command& command, uint64_t& seed);
// --json: the table as JSON on stdout.
void add_json(Command& command, bool& json);

}  // namespace tessera
