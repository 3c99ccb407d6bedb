#pragma once

#include <string>

#include "engine/core/named_tensors.h"

namespace tessera {

// Copies the values of `given` into the tensors of `own` with the same names, so that a saved state() is
// restored bit by bit. Fails, with nothing changed, for a name that is missing, unknown or given twice, and
// for another type or shape; the error begins with `where`, such as the file's path.
void load_state(const NamedTensors& own, const NamedTensors& given, const std::string& where);

}  // namespace tessera
