#include "apps/inspector/lessons/lesson_proof.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/autograd/observe.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

// The loss with h added to the cell.
double moved_loss(const Lesson& lesson, const PassRecord& record, const Numbers& numbers, size_t place,
                  int64_t cell, double h) {
  Numbers moved = numbers.copy(DType::f64, numbers.off());
  for (const auto& [name, tensor] : moved.all())
    if (name == record.values()[place].name) tensor.data<double>()[cell] += h;
  const auto& steps = record.steps();
  const auto made = std::find_if(steps.begin(), steps.end(),
                                 [&](const PassRecord::Step& step) { return step.output == place; });
  const Observer observer([&](const ForwardEvent& event) {
    const Tape* tape = Tape::recording();
    if (!tape || !tape->keeps_all() || made == steps.end() || event.op.name != made->op->name) return;
    if (static_cast<std::ptrdiff_t>(tape->steps().size()) == made - steps.begin())
      event.output.data<double>()[cell] += h;
  });
  return lesson.run(moved).value(lesson.loss).value.item();
}

PassRecord record_in_double(const Lesson& lesson, const Numbers& numbers) {
  Numbers exact = numbers.copy(DType::f64, numbers.off());
  return lesson.run(exact);
}

Json proof_of(const Lesson& lesson, const PassRecord& record, const Numbers& numbers, size_t place,
              int64_t cell) {
  const Tensor& gradient = record.values()[place].gradient;
  const double analytic = gradient.defined() ? gradient.values()[static_cast<size_t>(cell)] : 0;
  const double difference = slope_of_lesson(lesson, record, numbers, place, cell);
  const double size = std::max(std::abs(analytic), std::abs(difference));
  const double error = std::abs(analytic - difference) / (size < 1e-6 ? 1 : size);
  return {{"cell", cell},
          {"analytic", analytic},
          {"difference", difference},
          {"error", error},
          {"ok", error < 1e-6}};
}

}  // namespace

double slope_of_lesson(const Lesson& lesson, const PassRecord& record, const Numbers& numbers, size_t place,
                       int64_t cell) {
  const double x = record.values()[place].value.values()[static_cast<size_t>(cell)];
  const double h = 1e-3 * (std::isfinite(x) ? std::max(1.0, std::abs(x)) : 1.0);
  const auto loss = [&](double by) { return moved_loss(lesson, record, numbers, place, cell, by); };
  return (8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h);
}

Json proof_of_lesson(const Lesson& lesson, const Numbers& numbers, size_t place, int64_t cell) {
  const PassRecord record = record_in_double(lesson, numbers);
  check(place < record.values().size(), "proof: value ", place, "; the pass has ", record.values().size());
  const PassRecord::Value& value = record.values()[place];
  check(value.kind != PassRecord::Kind::constant, "proof: ", value.name,
        " is a constant and has no gradient");
  check(cell >= 0 && cell < value.value.elements(), "proof: cell ", cell, "; ", value.name, " has ",
        value.value.elements());
  return proof_of(lesson, record, numbers, place, cell);
}

Json proofs_of_lesson(const Lesson& lesson, const Numbers& numbers) {
  const PassRecord record = record_in_double(lesson, numbers);
  Json proofs = Json::object();
  for (size_t place = 0; place < record.values().size(); ++place) {
    const PassRecord::Value& value = record.values()[place];
    if (!value.gradient.defined()) continue;
    Json& cells = proofs[std::to_string(place)] = Json::array();
    for (int64_t cell = 0; cell < value.value.elements(); ++cell)
      cells.push_back(proof_of(lesson, record, numbers, place, cell));
  }
  return proofs;
}

}  // namespace tessera
