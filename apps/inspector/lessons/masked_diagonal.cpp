// Lesson 7: the diagonal mask of locality self-attention (LSA; Lee et al., 2021): no token looks at itself.
//
// The queries are the keys, as they nearly are when training begins, so that each token finds itself most
// alike: the largest score of each row is that on the diagonal, where the mask puts -inf.

#include "apps/inspector/lessons/lessons.h"
#include "engine/ops/attention/mask.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/matmul.h"
#include "engine/ops/reduce.h"
#include "engine/ops/softmax.h"

namespace tessera {

namespace {

PassRecord run(Numbers& numbers) {
  const Tensor q = numbers.leaf("q", {3, 4},
                                {2, 0, 0, 0,  //
                                 0, 2, 0, 0,  //
                                 1, 1, 1, 1});
  const Tensor k = numbers.leaf("k", {3, 4},
                                {2, 0, 0, 0,  //
                                 0, 2, 0, 0,  //
                                 1, 1, 1, 1});
  const Tensor v = numbers.leaf("v", {3, 1}, {3, 1, -3});

  Tape tape;
  tape.keep_all();
  const Tensor products = named("products", matmul(q, k, false, true));
  const Tensor alike = named("alike", 0.5 * products);  // 2 0 1, 0 2 1, 1 1 2
  const Tensor scores = numbers.has("mask") ? named("scores", mask_diagonal(alike)) : alike;
  const Tensor p = named("probabilities", softmax(scores));
  const Tensor y = named("y", matmul(p, v));
  const Tensor loss = sum(y);
  tape.backward(loss);
  return PassRecord(tape, numbers.with({{"loss", loss}}));
}

}  // namespace

const Lesson masked_diagonal_lesson = {
    .name = "masked-diagonal",
    .title = "LSA: no token looks at itself",
    .look_at =
        "The largest score of each row is that of the token with itself. The mask makes it -inf, the softmax "
        "turns that into a probability of exactly 0, and the others share the whole: 1/2 and 1/2 in the last "
        "row. Leave the mask out and compare how much is left for the neighbours.",
    .question =
        "On the diagonal the gradient of the probabilities is 3, 1, -3, but that of the scores is 0. Why?",
    .answer =
        "The score there is -inf whatever q and k are, so nothing can change it. The formula says it too: "
        "dscores = P (dP - the mean of dP under P), and P is 0.",
    .run = run,
    .term = {"mask", "diagonal mask"},
};

}  // namespace tessera
