#pragma once

// The slope of a lesson's loss, measured: what every gradient must equal.

#include "apps/inspector/lessons/lesson.h"
#include "apps/inspector/proof.h"
#include "engine/io/json.h"

namespace tessera {

// The lesson's program on a copy of these numbers in double.
Experiment experiment_of_lesson(const Lesson& lesson, const Numbers& numbers);

// The proof of a cell of value `place`, as JSON.
Json proof_of_lesson(const Lesson& lesson, const Numbers& numbers, size_t place, int64_t cell);

// The proofs of every cell that a gradient can have: {place: [proof, ...]}.
Json proofs_of_lesson(const Lesson& lesson, const Numbers& numbers);

}  // namespace tessera
