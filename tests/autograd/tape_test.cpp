#include "engine/autograd/tape.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "engine/check/op_case.h"
#include "engine/core/dispatch.h"
#include "engine/core/error.h"
#include "engine/ops/catalog.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/linear.h"
#include "engine/ops/matmul.h"
#include "engine/ops/norm.h"
#include "engine/ops/reduce.h"
#include "tests/autograd/leaf.h"

using namespace tessera;
using Values = std::vector<double>;

TEST_CASE("tape: no tape, nothing recorded") {
  const Tensor w = leaf({1, 2});
  const Tensor y = scale(w, 3);
  CHECK(y.place().tape == 0);
  CHECK(Tape::recording() == nullptr);
  CHECK(!wants_gradient({w}));
}

TEST_CASE("tape: what needs no gradient is not recorded") {
  const Tensor x = Tensor::from({1, 2}, {2});
  Tape tape;
  const Tensor y = scale(x, 3);
  CHECK(tape.steps().empty());
  CHECK_THROWS_WITH_AS(
      tape.backward(sum(y)),
      "tape: backward of [], which this tape did not record; was it made before the tape, or detached?",
      Error);
}

TEST_CASE("tape: a value that is used several times adds its gradients up") {
  const Tensor w = leaf({2, 3});
  Tape tape;
  const Tensor h = scale(w, 2);  // used three times, twice in one op
  const Tensor y = add(multiply(h, h), scale(h, 5));
  tape.backward(sum(y));  // 4 w^2 + 10 w
  CHECK(w.grad().values() == Values{8 * 2 + 10, 8 * 3 + 10});
}

TEST_CASE("tape: a leaf that is used twice in one op") {
  const Tensor w = Tensor::from({1, 2, 3, 4}, {2, 2}, DType::f64).require_grad();
  Tape tape;
  tape.backward(sum(matmul(w, w)));
  CHECK(w.grad().values() == Values{3 + 4, 7 + 4, 3 + 6, 7 + 6});
}

TEST_CASE("tape: a gradient that two values share is not added to in place") {
  const Tensor a = leaf({1}), b = leaf({1});
  Tape tape;
  const Tensor p = scale(a, 1), q = scale(b, 1);
  const Tensor twice = add(p, q);                // hands one dy to both p and q
  tape.backward(sum(add(twice, scale(p, 10))));  // p has more to come, q has not
  CHECK(a.grad().values() == Values{11});
  CHECK(b.grad().values() == Values{1});
}

TEST_CASE("tape: a view shares the gradient") {
  const Tensor w = leaf({1, 2, 3, 4});
  Tape tape;
  const Tensor h = scale(w.reshape({2, 2}), 3);
  tape.backward(sum(multiply(h.reshape({4}), h.reshape({4}))));
  CHECK(w.grad().shape() == Shape{4});
  CHECK(w.grad().values() == Values{18, 36, 54, 72});
}

TEST_CASE("tape: leaves add over backwards, and begin anew after zero_grad in the same memory") {
  const Tensor w = leaf({1, 2});
  const auto step = [&](double c) {
    Tape tape;
    tape.backward(sum(scale(w, c)));
  };
  step(3);
  step(4);
  CHECK(w.grad().values() == Values{7, 7});
  const void* memory = w.grad().raw();
  w.zero_grad();
  CHECK(!w.grad().defined());
  step(5);
  CHECK(w.grad().values() == Values{5, 5});
  CHECK(w.grad().raw() == memory);
}

TEST_CASE("tape: backward from any output, with its gradient") {
  const Tensor w = leaf({1, 2});
  Tape tape;
  const Tensor y = multiply(w, w);
  tape.backward(y, Tensor::from({10, 100}, {2}, DType::f64));
  CHECK(w.grad().values() == Values{20, 400});
}

TEST_CASE("tape: what the loss does not depend on gets nothing") {
  const Tensor w = leaf({1}), other = leaf({1});
  Tape tape;
  const Tensor unused = scale(other, 2);
  tape.backward(sum(scale(w, 2)));
  CHECK(!other.grad().defined());
  CHECK(!unused.grad().defined());
}

TEST_CASE("tape: detach stops the gradient") {
  const Tensor w = leaf({3});
  Tape tape;
  tape.backward(sum(multiply(w, scale(w, 2).detach())));
  CHECK(w.grad().values() == Values{6});
}

TEST_CASE("tape: kept gradients") {
  const Tensor w = leaf({1, 2});
  Tape tape;
  const Tensor h = scale(w, 2), y = multiply(h, h);
  tape.keep(h);
  tape.keep(w);
  tape.backward(sum(y));
  CHECK(tape.gradient(h).values() == Values{4, 8});
  CHECK(tape.gradient(w).values() == Values{8, 16});
  CHECK(tape.gradient_of_step(0).values() == Values{4, 8});
  CHECK(!tape.gradient_of_step(1).defined());
  CHECK_THROWS_WITH_AS(tape.gradient(y),
                       "tape: the gradient of [2] was not kept; call keep() before backward()", Error);
}

TEST_CASE("tape: keep_all keeps every step's, and a kept gradient is nobody else's") {
  const Tensor w = leaf({1});
  Tape tape;
  tape.keep_all();
  const Tensor p = scale(w, 1), s = add(p, p);
  tape.backward(sum(s));
  CHECK(tape.gradient(s).values() == Values{1});
  CHECK(tape.gradient(p).values() == Values{2});
  for (size_t i = 0; i < tape.steps().size(); ++i) CHECK(tape.gradient_of_step(i).defined());
}

TEST_CASE("tape: steps carry their op and their module's path") {
  const Tensor w = leaf({1});
  Tape tape;
  {
    const std::string path = "blocks.0.mlp";
    const ModuleScope inside(path);
    scale(w, 2);
  }
  scale(w, 2);
  REQUIRE(tape.steps().size() == 2);
  CHECK(tape.steps()[0].path == "blocks.0.mlp");
  CHECK(tape.steps()[1].path.empty());
  CHECK(tape.steps()[0].op->name == "scale");
  CHECK(tape.steps()[0].op->backward == "dx = c * dy");
}

TEST_CASE("tape: errors of backward") {
  const Tensor w = leaf({1, 2});
  Tape tape;
  const Tensor y = scale(w, 2), loss = sum(y);
  CHECK_THROWS_WITH_AS(tape.backward(y), "tape: backward from [2] needs its gradient; a loss has one element",
                       Error);
  CHECK_THROWS_WITH_AS(tape.backward(y, Tensor::empty({3}, DType::f64)), "tape: gradient f64 [3] for f64 [2]",
                       Error);
  CHECK_THROWS_WITH_AS(tape.backward(y, Tensor::empty({2}, DType::f32)), "tape: gradient f32 [2] for f64 [2]",
                       Error);
  CHECK_THROWS_WITH_AS(
      tape.backward(sum(Tensor::empty({2}))),
      "tape: backward of [], which this tape did not record; was it made before the tape, or detached?",
      Error);
  tape.backward(loss);
  CHECK_THROWS_WITH_AS(tape.backward(loss),
                       "tape: backward a second time; a tape is read once, record the step again", Error);
  CHECK_THROWS_WITH_AS(scale(w, 2), "scale: its tape was read already; a new step needs a new tape", Error);
  CHECK_THROWS_WITH_AS(Tensor(y).require_grad(),
                       "tensor: a recorded value has its gradient on the tape; detach() it to make a leaf",
                       Error);
}

TEST_CASE("tape: a dry run records, and touches no memory") {
  const DryRun dry;
  const Tensor w = Tensor::empty({4, 4}).require_grad();
  Tape tape;
  const Tensor h = matmul(w, w);
  tape.backward(sum(add(h, multiply(h, h))));
  CHECK(tape.steps().size() == 4);
  CHECK(w.grad().shape() == Shape{4, 4});
}

TEST_CASE("observer: told of every op and of every step that is read back") {
  const Tensor w = leaf({1});
  std::vector<std::string> forward, backward;
  int64_t macs = 0;
  {
    const Observer observer(
        [&](const ForwardEvent& event) {
          forward.emplace_back(event.op.name);
          macs += event.macs;
        },
        [&](const BackwardEvent& event) { backward.emplace_back(event.op.name); });
    matmul(Tensor::empty({2, 3}), Tensor::empty({3, 5}));
    Tape tape;
    tape.backward(sum(scale(w, 2)));
  }
  scale(w, 2);
  CHECK(forward == std::vector<std::string>{"matmul", "scale", "sum"});
  CHECK(backward == std::vector<std::string>{"sum", "scale"});
  CHECK(macs >= 2 * 3 * 5);
}

TEST_CASE("tape: after the first step a training loop asks the system for no memory") {
  const Tensor x = random_tensor({300, 20}, 1).to(DType::f32);
  const Tensor w1 = random_tensor({40, 20}, 2).to(DType::f32).clone().require_grad();
  const Tensor w2 = random_tensor({10, 40}, 3).to(DType::f32).clone().require_grad();
  const Tensor one = Tensor::full({40}, 1).require_grad(), zero = Tensor::zeros({40}).require_grad();
  const auto step = [&] {
    for (const Tensor& p : {w1, w2, one, zero}) p.zero_grad();
    Tape tape;
    const Tensor h = layer_norm(linear(x, w1, zero, Activation::gelu), one, zero);
    tape.backward(mean(square(linear(h, w2, {}))));
  };
  step();
  const MemoryStats first = memory_stats(Device::cpu);
  for (int i = 0; i < 5; ++i) step();
  CHECK(memory_stats(Device::cpu).system_allocations == first.system_allocations);
  CHECK(memory_stats(Device::cpu).reserved == first.reserved);
  CHECK(memory_stats(Device::cpu).in_use == first.in_use);
}
