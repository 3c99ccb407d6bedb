// Lesson 3: softmax and cross entropy, the loss of every classifier.
//
// Two rows of logits for three classes. They are logarithms, so that the probabilities are simple fractions:
// 1/8, 2/8, 5/8 and 6/8, 1/8, 1/8. The right class of the first row is the last one (5/8), that of the second
// row is the one in the middle (1/8). A model runs the op cross_entropy, which does all steps in one; here
// they run one by one.

#include "apps/inspector/lessons/lessons.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"
#include "engine/ops/softmax.h"

namespace tessera {

namespace {

constexpr double log2 = 0.6931471805599453, log5 = 1.6094379124341003, log6 = 1.791759469228055;

PassRecord run(Numbers& numbers) {
  const Tensor logits = numbers.leaf("logits", {2, 3},
                                     {0, log2, log5,  //
                                      log6, 0, 0});
  const Tensor target = numbers.constant("target", {2, 3},
                                         {0, 0, 1,  //
                                          0, 1, 0});

  Tape tape;
  tape.keep_all();
  const Tensor p = named("probabilities", softmax(logits));
  const Tensor logs = named("log_probabilities", log(p));
  const Tensor chosen = named("chosen", target * logs);  // those of the right classes, 0 elsewhere
  const Tensor total = named("total", sum(chosen));
  const Tensor loss = -0.5 * total;  // minus their mean over the two rows
  tape.backward(loss);
  return PassRecord(tape, numbers.with({{"loss", loss}}));
}

}  // namespace

const Lesson softmax_cross_entropy_lesson = {
    .name = "softmax-cross-entropy",
    .title = "Softmax and cross entropy: how wrong is a probability?",
    .look_at =
        "The loss sees one probability a row, that of the right class: 0.625 and 0.125. Its gradient there "
        "is -1 / (2 p): -0.8 and -4, five times steeper where the model is wrong. Behind the softmax only "
        "(p - target) / 2 is left, never larger than 1/2: that is what the op cross_entropy computes.",
    .question = "In each row the gradient of the logits adds up to 0. Why must it?",
    .answer =
        "Adding one number to all logits of a row leaves the softmax as it is, and so the loss: the slope "
        "in that direction, which is the sum of the row's gradient, is 0.",
    .run = run,
};

}  // namespace tessera
