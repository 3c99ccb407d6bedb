#pragma once

#include "engine/autograd/tape.h"

namespace tessera {

// Fails in the name of `op` unless all tensors lie on one device; undefined ones are skipped. Every op with
// more than one tensor calls it before its kernel does: a GPU cannot read a pointer to the host's memory.
void check_same_device(const char* op, std::span<const Input> tensors);
void check_same_device(const char* op, Inputs tensors);

}  // namespace tessera
