#pragma once

// What an evaluation writes for other programs: its classes and its pictures as CSV.

#include <string>
#include <vector>

#include "apps/training/evaluation.h"
#include "data/dataset.h"
#include "engine/io/json.h"

namespace tessera {

// The table of the classes, objects with the same keys, with full numbers; a field without a value is empty.
std::string class_csv(const Json& rows);

// One line for each picture, in the order of the split; `names` are the classes'.
std::string judgement_csv(const std::vector<Judgement>& judgements, const Split& split, Task task,
                          const std::vector<std::string>& names);

}  // namespace tessera
