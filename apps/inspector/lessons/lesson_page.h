#pragma once

// A lesson's program, run, and the page that shows it.

#include <optional>

#include "apps/inspector/lessons/lesson.h"
#include "apps/inspector/page.h"

namespace tessera {

struct LessonRun {
  const Lesson* lesson;
  Numbers numbers, fewer;  // of the whole program, and of the one without its term
  PassRecord pass;
  std::optional<PassRecord> without;  // its term left out, where it has one

  double loss() const { return pass.value(lesson->loss).value.item(); }
};

// Runs the program on these numbers, and where it has a term, once more without.
LessonRun run_lesson(const Lesson& lesson, Numbers numbers);

// The page of a run, which must outlive it: kind "lesson", every cell's proof, the words in Page::lesson by
// their names in Lesson, and the names of the lessons before and after it ("previous", "next"; null at the
// ends).
Page lesson_page(const LessonRun& run);

}  // namespace tessera
