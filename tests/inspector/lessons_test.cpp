#include "apps/inspector/lessons/lessons.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "apps/inspector/lessons/lesson_page.h"
#include "apps/inspector/lessons/lesson_proof.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/loss.h"
#include "engine/optim/adamw.h"
#include "tests/error_of.h"

using namespace tessera;

namespace {

using Values = std::vector<double>;

// A lesson's pass in double.
PassRecord pass_of(const std::string& name) {
  Numbers numbers(DType::f64);
  return find_lesson(name).run(numbers);
}

Values value_of(const PassRecord& record, const std::string& name) {
  return record.value(name).value.values();
}
Values gradient_of(const PassRecord& record, const std::string& name) {
  REQUIRE_MESSAGE(record.value(name).gradient.defined(), name);
  return record.value(name).gradient.values();
}

void check_near(const Values& got, const Values& wanted, double tolerance = 1e-9) {
  REQUIRE(got.size() == wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == doctest::Approx(wanted[i]).epsilon(tolerance));
  }
}

}  // namespace

TEST_CASE("lessons: every gradient of every lesson is the slope of its loss") {
  for (const Lesson* lesson : all_lessons()) {
    CAPTURE(lesson->name);
    Numbers numbers(DType::f64);
    const PassRecord record = lesson->run(numbers);
    const Prover prover(experiment_of_lesson(*lesson, numbers));
    double largest = 0;
    for (const PassRecord::Value& value : record.values())
      if (value.gradient.defined())
        for (const double g : value.gradient.values()) largest = std::max(largest, std::abs(g));
    CHECK(largest > 0.1);
    int64_t proved = 0;
    for (size_t i = 0; i < record.values().size(); ++i) {
      const PassRecord::Value& value = record.values()[i];
      if (value.kind == PassRecord::Kind::constant || value.name == "gradient") continue;  // follows w
      CAPTURE(value.name);
      for (int64_t cell = 0; cell < value.value.elements(); ++cell, ++proved) {
        const double analytic =
            value.gradient.defined() ? value.gradient.values()[static_cast<size_t>(cell)] : 0;
        const Proof proof = prover.prove(i, cell);
        REQUIRE(proof.analytic == analytic);
        REQUIRE(proof.agrees());
      }
    }
    CHECK(proved >= 6);
  }
}

TEST_CASE("lessons: all numbers fit on one page, in both types, and every lesson has its words") {
  std::set<std::string> names;
  for (const Lesson* lesson : all_lessons()) {
    CAPTURE(lesson->name);
    CHECK(names.insert(lesson->name).second);
    for (const char* text : {lesson->title, lesson->look_at, lesson->question, lesson->answer})
      CHECK(std::string(text).size() > 20);
    for (const DType dtype : {DType::f32, DType::f64}) {
      Numbers numbers(dtype);
      const PassRecord record = lesson->run(numbers);
      CHECK(record.value(lesson->loss).value.elements() == 1);
      CHECK(record.steps().size() <= 26);
      for (const PassRecord::Value& value : record.values()) {
        CAPTURE(value.name);
        CHECK(value.value.elements() <= 40);
        CHECK(value.value.dtype() == dtype);
        CHECK(value.name.find(".constant") == std::string::npos);
        CHECK(value.name.find("leaf") == std::string::npos);
      }
    }
  }
  CHECK(names.size() == 12);
}

TEST_CASE("lessons: a second run has the same numbers, and a lesson without its term another result") {
  int64_t terms = 0;
  for (const Lesson* lesson : all_lessons()) {
    CAPTURE(lesson->name);
    Numbers numbers(DType::f64), fewer(DType::f64, lesson->term.name);
    const PassRecord first = lesson->run(numbers), second = lesson->run(numbers);
    for (size_t i = 0; i < first.values().size(); ++i) {
      CHECK(first.values()[i].value.values() == second.values()[i].value.values());
      REQUIRE(first.values()[i].gradient.defined() == second.values()[i].gradient.defined());
      if (second.values()[i].gradient.defined())
        CHECK(first.values()[i].gradient.values() == second.values()[i].gradient.values());
    }
    if (*lesson->term.name == '\0') continue;
    const PassRecord without = lesson->run(fewer);
    CHECK(without.value("loss").value.item() != first.value("loss").value.item());
    ++terms;
  }
  CHECK(terms == 5);
}

TEST_CASE("lesson chain-rule: (2 * 3 - 4)^2") {
  const PassRecord record = pass_of("chain-rule");
  CHECK(value_of(record, "product") == Values{6});
  CHECK(value_of(record, "sum") == Values{2});
  CHECK(value_of(record, "y") == Values{4});
  CHECK(gradient_of(record, "sum") == Values{4});
  CHECK(gradient_of(record, "c") == Values{4});
  CHECK(gradient_of(record, "a") == Values{12});
  CHECK(gradient_of(record, "b") == Values{8});
}

TEST_CASE("lesson linear: errors times inputs, errors times weights") {
  const PassRecord record = pass_of("linear");
  CHECK(value_of(record, "y") == Values{2, -3, 4, 5});
  CHECK(gradient_of(record, "y") == Values{1, 0, 0, -2});
  CHECK(gradient_of(record, "weight") == Values{1, 2, -1, 0, -2, -6});
  CHECK(gradient_of(record, "bias") == Values{1, -2});
  CHECK(gradient_of(record, "x") == Values{2, 0, 1, 2, -2, -4});
  CHECK(value_of(record, "loss") == Values{2.5});
}

TEST_CASE("lesson softmax-cross-entropy: (p - target) / rows, as the fused op has it") {
  const PassRecord record = pass_of("softmax-cross-entropy");
  check_near(value_of(record, "probabilities"), {0.125, 0.25, 0.625, 0.75, 0.125, 0.125});
  check_near(gradient_of(record, "probabilities"), {0, 0, -0.8, 0, -4, 0});
  check_near(gradient_of(record, "logits"), {0.0625, 0.125, -0.1875, 0.375, -0.4375, 0.0625});
  const Tensor logits = record.value("logits").value.clone().require_grad();
  Tape tape;
  const Tensor loss = cross_entropy(logits, Tensor::from(std::vector<int64_t>{2, 1}, {2}));
  tape.backward(loss);
  check_near(value_of(record, "loss"), {loss.item()});
  check_near(gradient_of(record, "logits"), logits.grad().values());
}

TEST_CASE("lesson layer-norm: a row ten times larger gets a tenth of the gradient") {
  const PassRecord record = pass_of("layer-norm");
  CHECK(value_of(record, "y") == Values{-1, -2, 1, 2, -1, -2, 1, 2});
  check_near(gradient_of(record, "x"), {2, -2, 0, 0, -0.2, 0.2, 0, 0});
  check_near(gradient_of(record, "weight"), {-4, -2, 0, 0});
  check_near(gradient_of(record, "bias"), {4, 2, 0, 0});
  CHECK(value_of(record, "loss") == Values{-8});
}

TEST_CASE("lesson attention: scores are queries, and a settled softmax passes nothing on") {
  const PassRecord record = pass_of("attention");
  CHECK(value_of(record, "scores") == Values{0, 0, 0, 0, 1, 2, 12, 0, 0});
  check_near(gradient_of(record, "probabilities"), {3, 0, -3, 3, 0, -3, 3, 0, -3});
  const Values slopes = gradient_of(record, "scores");
  for (size_t i = 0; i < 3; ++i) {
    CHECK(slopes[i] == doctest::Approx(1.0 - static_cast<double>(i)).epsilon(1e-12));  // P (dP - 0) = dP / 3
    CHECK(std::abs(slopes[6 + i]) < 1e-4);
  }
  const double e = std::exp(1.0), sum = 1 + e + e * e, mean = (3 - 3 * e * e) / sum;
  check_near({slopes[3], slopes[4], slopes[5]},
             {(3 - mean) / sum, -mean * e / sum, (-3 - mean) * e * e / sum});
  CHECK(gradient_of(record, "q")[3] == 0);                     // no key has anything in the last channel
  CHECK(gradient_of(record, "k")[3] == doctest::Approx(0.5));  // but token 0's query has
}

TEST_CASE("lesson learned-scale: dscale is the sum of dscores times products") {
  const PassRecord record = pass_of("learned-scale");
  CHECK(value_of(record, "products") == Values{4, 0, -2, 4, 0, -2});
  check_near(value_of(record, "scores"), {4, 0, -2, 1, 0, -0.5});
  const Values scores = gradient_of(record, "scores"), scale = gradient_of(record, "scale");
  for (size_t h = 0; h < 2; ++h)
    CHECK(scale[h] == doctest::Approx(4 * scores[3 * h] - 2 * scores[3 * h + 2]));
  CHECK(scale[0] < 0);
  CHECK(scale[1] > 0);
  CHECK(std::abs(scores[4]) > 0.01);  // key 1 has a gradient, and no part in dscale
}

TEST_CASE("lesson masked-diagonal: probability and gradient are 0 on the diagonal") {
  const PassRecord record = pass_of("masked-diagonal");
  CHECK(value_of(record, "alike") == Values{2, 0, 1, 0, 2, 1, 1, 1, 2});
  const Values p = value_of(record, "probabilities"), dp = gradient_of(record, "probabilities"),
               ds = gradient_of(record, "alike");
  check_near({dp[0], dp[4], dp[8]}, {3, 1, -3});
  for (const size_t i : {0, 4, 8}) {
    CHECK(p[i] == 0);
    CHECK(ds[i] == 0);
  }
  check_near({p[6], p[7], ds[6], ds[7]}, {0.5, 0.5, 0.5, -0.5});
}

TEST_CASE("lesson prior: a number of the table gets the sum over its pairs") {
  const PassRecord record = pass_of("prior");
  check_near(value_of(record, "table"), {1, 1.5, 2.5, 0.5, 1, 2, -0.5, 0, 1});
  check_near(value_of(record, "omega"), {1, 2, 0, 1, 0.5, 1, -0.5, 0, 1.5, 2.5, 1, 2, 1, 1.5, 0.5, 1});
  const Values omega = gradient_of(record, "omega"), table = gradient_of(record, "table");
  check_near({table[4]}, {omega[0] + omega[5] + omega[10] + omega[15]});
  check_near({table[8]}, {omega[3]});
  CHECK(gradient_of(record, "products")[2] == 0);  // query 0, key 2
  CHECK(std::abs(omega[2]) > 0.01);
}

TEST_CASE("lesson decay: gamma to the distance, and gates that only distant pairs move") {
  const PassRecord record = pass_of("decay");
  const Values fixed = value_of(record, "fixed.probabilities"),
               by = value_of(record, "content.probabilities");
  check_near({fixed[0], fixed[1], fixed[2], fixed[3]}, {4 / 9.0, 2 / 9.0, 2 / 9.0, 1 / 9.0});
  check_near({by[0], by[1], by[2], by[3]}, {1 / 2.4, 0.5 / 2.4, 0.5 / 2.4, 0.4 / 2.4});
  CHECK(std::abs(gradient_of(record, "content.scores")[0]) > 0.01);
  const Values slopes = gradient_of(record, "content.decay"), gates = gradient_of(record, "content.gates");
  const double of_token_0 =
      (slopes[1] + slopes[4]) / 2 + (slopes[2] + slopes[8]) / 2 + slopes[3] + slopes[12];
  check_near({gates[0]}, {of_token_0});  // d (dy_ij + dy_ji) / 2, and nothing of dy_00
  CHECK(record.value("fixed.decay").kind == PassRecord::Kind::constant);
}

TEST_CASE("lesson shifted-patches: the gradient of the image counts how often token 0 sees a pixel") {
  const PassRecord record = pass_of("shifted-patches");
  CHECK(gradient_of(record, "image") == Values{2, 2, 1, 0, 2, 2, 1, 0});
  Numbers numbers(DType::f64, "shifts");
  const PassRecord without = find_lesson("shifted-patches").run(numbers);
  CHECK(gradient_of(without, "image") == Values{1, 1, 0, 0, 1, 1, 0, 0});
}

TEST_CASE("lesson adamw: its step is the optimizer's") {
  const PassRecord record = pass_of("adamw");
  CHECK(gradient_of(record, "w") == Values{4, 0.04, 0});
  CHECK(value_of(record, "gradient") == Values{4, 0.04, 0});
  check_near(value_of(record, "w_after"), {0.89, 0.89, 0.99}, 1e-6);  // eps is 1e-8, beside a root of 0.04
  CHECK_FALSE(record.value("adamw.m").gradient.defined());
  const Tensor w = record.value("w").value.clone().require_grad();
  AdamW optimizer({{.parameters = {{"w", w}}, .lr_scale = 1, .weight_decay = 0.1}});
  Tape tape;
  tape.backward(1.0 * w, record.value("gradient").value);
  optimizer.step(0.1);
  check_near(w.values(), value_of(record, "w_after"));
}

TEST_CASE("lesson block: the loss of token 0 reaches the others by keys and values alone") {
  const PassRecord record = pass_of("block");
  CHECK(value_of(record, "norm1.out") == Values{1, 1, -1, -1, 1, -1, 1, -1, 1, -1, -1, 1});
  const auto is_zero = [](const Values& values, size_t first, size_t count) {
    return std::all_of(values.begin() + static_cast<std::ptrdiff_t>(first),
                       values.begin() + static_cast<std::ptrdiff_t>(first + count),
                       [](double x) { return x == 0; });
  };
  const Values q = gradient_of(record, "attn.q"), k = gradient_of(record, "attn.k"),
               v = gradient_of(record, "attn.v");  // [3, 2]
  CHECK(value_of(record, "attn.scores") == Values{0, 2, 0, 0, 0, 2, 0, 0, 0});
  CHECK_FALSE(is_zero(q, 0, 1));
  CHECK(is_zero(q, 2, 4));
  CHECK_FALSE(is_zero(k, 2, 1));
  CHECK_FALSE(is_zero(k, 4, 2));
  CHECK_FALSE(is_zero(v, 2, 1));
  CHECK(is_zero(gradient_of(record, "mlp.hidden"), 4, 8));
  CHECK_FALSE(is_zero(gradient_of(record, "x"), 4, 8));
}

TEST_CASE("lessons: an unknown name suggests the nearest") {
  CHECK(error_of([] { find_lesson("chainrule"); }).find("did you mean 'chain-rule'?") != std::string::npos);
}

TEST_CASE("lessons: the page holds every cell's proof, and all of them hold") {
  for (const Lesson* lesson : all_lessons()) {
    CAPTURE(lesson->name);
    const LessonRun run = run_lesson(*lesson, Numbers(DType::f32));
    const Page page = lesson_page(run);
    REQUIRE(page.passes.size() == (*lesson->term.name == '\0' ? 1 : 2));
    for (const PagePass& pass : page.passes) {
      int64_t proofs = 0;
      for (const auto& [place, cells] : pass.proofs.items()) {
        const PassRecord::Value& value = pass.record->values()[std::stoul(place)];
        CAPTURE(value.name);
        CHECK(cells.size() == static_cast<size_t>(value.value.elements()));
        for (const auto& proof : cells) {
          CHECK(proof["ok"] == true);
          const double stored = value.gradient.values()[proof["cell"].get<size_t>()];
          CHECK(std::abs(stored - proof["analytic"].get<double>()) < 1e-5);
          ++proofs;
        }
      }
      CHECK(proofs >= 6);
    }
  }
}
