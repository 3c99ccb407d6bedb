#pragma once

// The proofs of `tessera inspect --proofs`, printed.

#include <string>

#include "engine/autograd/pass_record.h"
#include "engine/io/json.h"

namespace tessera {

// A row for each proof of {place of the value: [{cell, analytic, difference, error, step, ok}]}, with the
// value's name and the cell's indices.
void print_proofs(const PassRecord& record, const Json& proofs);

// "1200 proofs, all right", or how many are wrong and the first of them.
std::string summary_of_proofs(const PassRecord& record, const Json& proofs);

}  // namespace tessera
