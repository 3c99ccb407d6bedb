// Lesson 2: a linear layer, y = x W^T + b, that is to give certain targets.
//
// Two inputs of three numbers each become two outputs of two numbers each. The loss is half the sum of the
// squared errors, so that its gradient with respect to y is the error itself.

#include "engine/ops/linear.h"

#include "apps/inspector/lessons/lessons.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"

namespace tessera {

namespace {

PassRecord run(Numbers& numbers) {
  const Tensor x = numbers.leaf("x", {2, 3},
                                {1, 2, -1,  //
                                 0, 1, 3});
  const Tensor weight = numbers.leaf("weight", {2, 3},
                                     {2, 0, 1,  //
                                      -1, 1, 2});
  const Tensor bias = numbers.leaf("bias", {2}, {1, -2});
  const Tensor target = numbers.constant("target", {2, 2},
                                         {1, -3,  //
                                          4, 7});

  Tape tape;
  tape.keep_all();
  const Tensor y = named("y", linear(x, weight, bias));  // [2, 2]: 2 -3, 4 5
  const Tensor error = named("error", y - target);       // 1 0, 0 -2
  const Tensor squares = named("squares", square(error));
  const Tensor total = named("total", sum(squares));
  const Tensor loss = 0.5 * total;
  tape.backward(loss);
  return PassRecord(tape, numbers.with({{"loss", loss}}));
}

}  // namespace

const Lesson linear_lesson = {
    .name = "linear",
    .title = "A linear layer: y = x W^T + b",
    .look_at =
        "The gradient of y is the error: 1 where y is 1 too large, -2 where it is 2 too small. Each row of "
        "dW = dy^T x is a sum of inputs, each times the error of that output. Each row of dx = dy W is a "
        "sum of rows of the weight, each times its output's error.",
    .question = "The first row of dW is the first row of x. Why?",
    .answer =
        "The first output errs for the first input alone, by 1, so dW[0] = 1 x[0] + 0 x[1]. An input whose "
        "error is 0 changes nothing.",
    .run = run,
};

}  // namespace tessera
