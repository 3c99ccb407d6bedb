#pragma once

// The slope of a lesson's loss, measured: what every gradient must equal.

#include "apps/inspector/lessons/lesson.h"
#include "engine/io/json.h"

namespace tessera {

// The central difference of fourth order, in double, of the loss with respect to one cell of value `place` of
// the record, which a run of the lesson on these numbers has made. A computed value is moved as soon as its
// op has run, so that whatever reads it reads the moved one.
double slope_of_lesson(const Lesson& lesson, const PassRecord& record, const Numbers& numbers, size_t place,
                       int64_t cell);

// {cell, analytic, difference, error, ok}: the gradient and the slope, both in double. `error` is relative to
// the larger of the two, or absolute where both are below 1e-6.
Json proof_of_lesson(const Lesson& lesson, const Numbers& numbers, size_t place, int64_t cell);

// The proofs of every cell that a gradient can have: {place: [proof, ...]}.
Json proofs_of_lesson(const Lesson& lesson, const Numbers& numbers);

}  // namespace tessera
