#pragma once

// The proofs of `tessera inspect --proofs`, printed.

#include "engine/autograd/pass_record.h"
#include "engine/io/json.h"

namespace tessera {

// A row for each proof: the value's name and the cell's indices, then what json_of(Proof) holds.
void print_proofs(const PassRecord& record, const Json& proofs);

// "1200 proofs, all right", or how many are wrong and the first of them.
std::string summary_of_proofs(const PassRecord& record, const Json& proofs);

}  // namespace tessera
