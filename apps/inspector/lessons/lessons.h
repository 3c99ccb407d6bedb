#pragma once

// The lessons in the order in which they are to be taken.

#include <span>
#include <string_view>

#include "apps/inspector/lessons/lesson.h"

namespace tessera {

// One file a lesson, of that name, which defines NAME_lesson.
#define TESSERA_LESSONS(X) \
  X(chain_rule)            \
  X(linear)                \
  X(softmax_cross_entropy) \
  X(layer_norm)            \
  X(attention) X(learned_scale) X(masked_diagonal) X(prior) X(decay) X(shifted_patches) X(adamw) X(block)

#define TESSERA_DECLARE(name) extern const Lesson name##_lesson;
TESSERA_LESSONS(TESSERA_DECLARE)
#undef TESSERA_DECLARE

// All lessons, in order.
std::span<const Lesson* const> all_lessons();

// The lesson of that name ("chain-rule"). Fails, with the nearest name, where there is none.
const Lesson& find_lesson(std::string_view name);

}  // namespace tessera
