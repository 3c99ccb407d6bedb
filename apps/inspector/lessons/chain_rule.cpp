// Lesson 1: the chain rule, on y = (a b + c)^2.
//
// A program computes y in small steps, each of which knows its own slope. A tape writes down the steps, and
// backward() reads them from the last to the first: the gradient of a step's input is the gradient of its
// output times that slope.

#include "apps/inspector/lessons/lessons.h"
#include "engine/ops/elementwise.h"

namespace tessera {

namespace {

PassRecord run(Numbers& numbers) {
  const Tensor a = numbers.leaf("a", {}, {2});
  const Tensor b = numbers.leaf("b", {}, {3});
  const Tensor c = numbers.leaf("c", {}, {-4});

  Tape tape;
  tape.keep_all();
  const Tensor product = named("product", a * b);  // 6;  its slopes: b = 3 for a, a = 2 for b
  const Tensor sum = named("sum", product + c);    // 2;  its slope is 1 for both
  const Tensor y = square(sum);                    // 4;  its slope is 2 sum = 4
  tape.backward(y);                                // dy/dc = 4 * 1, dy/da = 4 * 1 * 3, dy/db = 4 * 1 * 2
  return PassRecord(tape, numbers.with({{"y", y}}));
}

}  // namespace

const Lesson chain_rule_lesson = {
    .name = "chain-rule",
    .title = "The chain rule: y = (a b + c)^2",
    .look_at =
        "Step forward: each value appears when its step has run. Step backward: the gradient of a value "
        "is the gradient of what was made from it, times one local slope. The slope of the square is 2 "
        "times the sum, which is 4; that of the sum is 1; that of the product is the other factor.",
    .question = "c goes from -4 to -3.99. By how much does y grow, nearly?",
    .answer =
        "By 0.01 times dy/dc = 4, which is 0.04. Exactly it is 2.01^2 - 2^2 = 0.0401: a gradient is the "
        "slope at one point, and y is curved.",
    .run = run,
    .loss = "y",
};

}  // namespace tessera
