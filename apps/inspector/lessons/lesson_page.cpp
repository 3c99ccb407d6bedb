#include "apps/inspector/lessons/lesson_page.h"

#include <string>

#include "apps/inspector/lessons/lesson_proof.h"
#include "apps/inspector/lessons/lessons.h"

namespace tessera {

namespace {

bool has_term(const Lesson& lesson) { return *lesson.term.name != '\0'; }

Json words_of(const Lesson& lesson) {
  Json words{{"name", lesson.name},         {"title", lesson.title},   {"look_at", lesson.look_at},
             {"question", lesson.question}, {"answer", lesson.answer}, {"loss", lesson.loss},
             {"previous", nullptr},         {"next", nullptr}};
  const auto lessons = all_lessons();
  for (size_t i = 0; i < lessons.size(); ++i) {
    if (lessons[i] != &lesson) continue;
    words["number"] = i + 1;
    if (i > 0) words["previous"] = lessons[i - 1]->name;
    if (i + 1 < lessons.size()) words["next"] = lessons[i + 1]->name;
  }
  words["count"] = lessons.size();
  return words;
}

}  // namespace

LessonRun run_lesson(const Lesson& lesson, Numbers numbers) {
  const PassRecord pass = lesson.run(numbers);
  LessonRun run{&lesson, numbers, numbers.copy(numbers.dtype(), lesson.term.name), pass, std::nullopt};
  if (has_term(lesson)) run.without = lesson.run(run.fewer);
  return run;
}

Page lesson_page(const LessonRun& run) {
  const Lesson& lesson = *run.lesson;
  Page page{.kind = "lesson", .title = lesson.title, .lesson = words_of(lesson)};
  const std::string source = std::string("lesson ") + lesson.name;
  page.passes.push_back({.record = &run.pass,
                         .title = lesson.title,
                         .source = source,
                         .proofs = proofs_of_lesson(lesson, run.numbers)});
  if (!run.without) return page;
  page.passes.push_back({.record = &*run.without,
                         .role = "term",
                         .title = std::string("without the ") + lesson.term.title,
                         .source = source,
                         .proofs = proofs_of_lesson(lesson, run.fewer)});
  page.terms.push_back({{"name", lesson.term.name}, {"title", lesson.term.title}, {"pass", 1}});
  return page;
}

}  // namespace tessera
