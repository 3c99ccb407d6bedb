#include "apps/inspector/lessons/lesson_proof.h"

#include <limits>
#include <memory>
#include <string>

#include "apps/inspector/proof.h"

namespace tessera {

Experiment experiment_of_lesson(const Lesson& lesson, const Numbers& numbers) {
  // Each run writes its gradients into the numbers that it reads, so the record has numbers of its own.
  const auto exact = std::make_shared<Numbers>(numbers.copy(DType::f64, numbers.off()));
  const auto leaf = [exact](const std::string& name) -> const Tensor* {
    for (const auto& [known, tensor] : exact->all())
      if (known == name) return &tensor;
    return nullptr;
  };
  const auto loss = [exact, &lesson] { return lesson.run(*exact).value(lesson.loss).value.item(); };
  Numbers first = numbers.copy(DType::f64, numbers.off());
  return {lesson.run(first), loss, leaf};
}

Json proof_of_lesson(const Lesson& lesson, const Numbers& numbers, size_t place, int64_t cell) {
  return json_of(Prover(experiment_of_lesson(lesson, numbers)).prove(place, cell));
}

Json proofs_of_lesson(const Lesson& lesson, const Numbers& numbers) {
  const auto make = [&] { return experiment_of_lesson(lesson, numbers); };
  return proofs_of(make, std::numeric_limits<int64_t>::max());
}

}  // namespace tessera
