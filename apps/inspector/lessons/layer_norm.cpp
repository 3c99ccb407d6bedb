// Lesson 4: layer norm. Each row is moved to mean 0 and stretched to variance 1, then weighed and shifted.
//
// The second row is the first one times ten. eps, which keeps the root from 0, is 0 here, so that the numbers
// stay whole; a model has 1e-5.

#include "apps/inspector/lessons/lessons.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/norm.h"
#include "engine/ops/reduce.h"

namespace tessera {

namespace {

PassRecord run(Numbers& numbers) {
  const Tensor x = numbers.leaf("x", {2, 4},
                                {2, 2, 4, 4,  // mean 3, deviation 1
                                 20, 20, 40, 40});
  const Tensor weight = numbers.leaf("weight", {4}, {1, 2, 1, 1});
  const Tensor bias = numbers.leaf("bias", {4}, {0, 0, 0, 1});
  const Tensor slope = numbers.constant("slope", {2, 4},
                                        {4, 0, 0, 0,  // what the loss asks of y
                                         0, 2, 0, 0});

  Tape tape;
  tape.keep_all();
  const Tensor y = named("y", layer_norm(x, weight, bias, 0));  // both rows: -1 -2 1 2
  const Tensor weighed = named("weighed", y * slope);
  const Tensor loss = sum(weighed);
  tape.backward(loss);
  return PassRecord(tape, numbers.with({{"loss", loss}}));
}

}  // namespace

const Lesson layer_norm_lesson = {
    .name = "layer-norm",
    .title = "Layer norm: what does not depend on the scale of a row",
    .look_at =
        "The second row of x is ten times the first, and y is the same for both. The gradient of each row "
        "asks for one number alone (4 0 0 0, then 0 2 0 0), yet dx also moves its neighbours: moving one "
        "number moves the mean and the deviation of all. The row that is ten times larger gets a gradient "
        "ten times smaller.",
    .question = "Each row of dx adds up to 0, and so does dx times x. Why?",
    .answer =
        "Adding one number to a whole row, or multiplying the row, does not change y (eps is 0 here). The "
        "slope of the loss in these two directions is therefore 0, and they are the two sums.",
    .run = run,
};

}  // namespace tessera
