#pragma once

#include "apps/inspector/lessons/lesson_page.h"
#include "apps/inspector/serve/stage.h"

namespace tessera {

// A lesson on stage. Its step is plain gradient descent on every leaf with a gradient: x <- x - rate dx.
class LessonStage : public Stage {
 public:
  static constexpr double rate = 0.01;

  LessonStage(const Lesson& lesson, DType dtype) : run_(run_lesson(lesson, Numbers(dtype))) {}

  Page page() override { return lesson_page(run_); }
  Json prove(size_t pass, size_t value, int64_t cell) override;
  void show(const Image& picture) override;                  // fails: a lesson has none
  void set_term(const std::string& name, bool on) override;  // fails: the page has both already
  void step() override;

 private:
  LessonRun run_;
};

}  // namespace tessera
