#pragma once

#include <string>

#include "engine/core/named_tensors.h"

namespace tessera {

// Copies the numbers of `given` into the tensors of `own` that have the same names: what state() listed, and
// a file kept, is restored bit by bit. Fails, with nothing changed, in the name of `where` (a file, say) for
// a name that is missing, unknown or given twice, and for another type or shape.
void load_state(const NamedTensors& own, const NamedTensors& given, const std::string& where);

}  // namespace tessera
