#include "apps/inspector/lessons/lessons.h"

#include "engine/core/error.h"

namespace tessera {

std::span<const Lesson* const> all_lessons() {
#define TESSERA_ADDRESS(name) &name##_lesson,
  static const Lesson* const lessons[] = {TESSERA_LESSONS(TESSERA_ADDRESS)};
#undef TESSERA_ADDRESS
  return lessons;
}

const Lesson& find_lesson(std::string_view name) {
  std::vector<std::string> names;
  for (const Lesson* lesson : all_lessons()) {
    if (lesson->name == name) return *lesson;
    names.emplace_back(lesson->name);
  }
  fail("inspect: no lesson '", name, "'", did_you_mean(name, names), "; --lesson without a name lists all");
}

}  // namespace tessera
