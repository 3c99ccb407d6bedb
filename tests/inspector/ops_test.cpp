// The page's ops compute every step of every model again, and explain its cells.

#include <algorithm>

#include "apps/inspector/lessons/lesson_page.h"
#include "apps/inspector/lessons/lessons.h"
#include "apps/inspector/tape_page.h"
#include "engine/check/op_case.h"
#include "engine/ops/batch_norm.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/linear.h"
#include "engine/ops/matmul.h"
#include "engine/ops/reduce.h"
#include "tests/inspector/model_fixtures.h"
#include "tests/inspector/node.h"

using namespace tessera;

TEST_CASE("page: every step of every fixture, computed again and explained in the page") {
  if (!has_node()) return;
  const TemporaryFolder folder;
  std::string pages;
  int64_t models = 0;
  for (const auto& [name, path] : model_fixtures()) {
    const PassInputs inputs = inputs_of_fixture(path, DType::f64);
    const std::string page = folder / (name + ".html");
    write_page_of(inputs, inspect_pass(inputs), page);
    pages += " " + page;
    ++models;
  }
  CHECK(models >= 30);
  const Said checked = run_script("check_ops.js", pages);
  CAPTURE(checked.err);
  CHECK(checked.code == 0);
  CHECK(std::ranges::count(checked.out, '\n') == models);  // a line for each page that was checked
}

TEST_CASE("page: linear layers and batch norms with an activation in the same step") {
  if (!has_node()) return;
  const TemporaryFolder folder;
  const auto leaf = [](const Shape& shape, uint64_t seed) {
    return random_tensor(shape, seed).require_grad();
  };
  std::string pages;
  for (const Activation f : all_activations) {
    const Tensor x = leaf({5, 3}, 1), w = leaf({4, 3}, 2), b = leaf({4}, 3), scale = leaf({4}, 4),
                 shift = leaf({4}, 5), c = random_tensor({5, 4}, 6);
    Tape tape;
    tape.keep_all();
    const Tensor mean = Tensor::zeros({4}, DType::f64), variance = Tensor::full({4}, 1, DType::f64);
    const BatchNormOptions options{.training = true, .f = f};
    const Tensor loss = sum(batch_norm(linear(x, w, b, f), scale, shift, mean, variance, options) * c);
    tape.backward(loss);
    const std::string page = folder / (std::string(name(f)) + ".html");
    write_page(page, tape, loss);
    pages += " " + page;
  }
  const Said checked = run_script("check_ops.js", pages);
  CAPTURE(checked.err);
  CHECK(checked.code == 0);
  CHECK(std::ranges::count(checked.out, '\n') == std::ssize(all_activations));
}

TEST_CASE("page: the formula of a matmul says which of its inputs is transposed") {
  if (!has_node()) return;
  const TemporaryFolder folder;
  Tape tape;
  tape.keep_all();
  Tensor loss = Tensor::zeros({}, DType::f64);
  for (const bool turn_a : {false, true})
    for (const bool turn_b : {false, true}) {
      const Tensor a = random_tensor(turn_a ? Shape{4, 3} : Shape{3, 4}, 1).require_grad();
      const Tensor b = random_tensor(turn_b ? Shape{5, 4} : Shape{4, 5}, 2).require_grad();
      loss = loss + sum(matmul(a, b, turn_a, turn_b) * random_tensor({3, 5}, 3));
    }
  tape.backward(loss);
  write_page(folder / "page.html", tape, loss);
  const Said checked = run_script("check_formulas.js", folder / "page.html");
  CAPTURE(checked.err);
  CHECK(checked.code == 0);
  CHECK(checked.out == "4 products\n");
}

TEST_CASE("page: the numbers that a lesson puts in give the result that stands beside them") {
  if (!has_node()) return;
  const TemporaryFolder folder;
  std::string pages;
  for (const Lesson* lesson : all_lessons()) {
    const LessonRun run = run_lesson(*lesson, Numbers(DType::f64));
    const std::string page = folder / (std::string(lesson->name) + ".html");
    write_page(lesson_page(run), page);
    pages += " " + page;
  }
  const Said checked = run_script("check_numbers.js", pages);
  CAPTURE(checked.err);
  CHECK(checked.code == 0);
  CHECK(std::stoi(checked.out) > 1000);
}
