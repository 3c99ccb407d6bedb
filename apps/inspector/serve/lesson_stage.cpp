#include "apps/inspector/serve/lesson_stage.h"

#include "apps/inspector/lessons/lesson_proof.h"
#include "engine/core/error.h"

namespace tessera {

Json LessonStage::prove(size_t pass, size_t value, int64_t cell) {
  check(pass < (run_.without ? 2U : 1U), "proof: pass ", pass, "; the page has ", run_.without ? 2 : 1);
  return proof_of_lesson(*run_.lesson, pass == 0 ? run_.numbers : run_.fewer, value, cell);
}

void LessonStage::show(const Image&) { fail("a lesson has no picture"); }

void LessonStage::set_term(const std::string& name, bool) {
  fail("the page has the pass without ", name, " already, where this lesson has such a term");
}

void LessonStage::step() {
  for (const PassRecord::Value& value : run_.pass.values()) {
    if (value.kind != PassRecord::Kind::leaf || !value.gradient.defined()) continue;
    std::vector<double> x = value.value.values();
    const std::vector<double> dx = value.gradient.values();
    for (size_t i = 0; i < x.size(); ++i) x[i] -= rate * dx[i];
    for (const auto& [name, tensor] : run_.numbers.all())
      if (name == value.name) tensor.copy_from(Tensor::from(x, tensor.shape(), tensor.dtype()));
  }
  run_ = run_lesson(*run_.lesson, run_.numbers);
}

}  // namespace tessera
