// Lesson 5: attention. Three tokens with queries and keys of width 4, so that 1 / sqrt(d) is 1/2.
//
// The keys are twice the unit vectors, so that the score of query i and key j is simply q[i, j]: token 0 asks
// for nothing, token 1 for key 2 more than for key 1, token 2 for key 0 with all its might.

#include "apps/inspector/lessons/lessons.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/matmul.h"
#include "engine/ops/reduce.h"
#include "engine/ops/softmax.h"

namespace tessera {

namespace {

PassRecord run(Numbers& numbers) {
  const Tensor q = numbers.leaf("q", {3, 4},
                                {0, 0, 0, 1,  //
                                 0, 1, 2, 0,  //
                                 12, 0, 0, 0});
  const Tensor k = numbers.leaf("k", {3, 4},
                                {2, 0, 0, 0,  //
                                 0, 2, 0, 0,  //
                                 0, 0, 2, 0});
  const Tensor v = numbers.leaf("v", {3, 1}, {3, 0, -3});

  Tape tape;
  tape.keep_all();
  const Tensor products = named("products", matmul(q, k, false, true));  // q k^T
  const Tensor scores = named("scores", 0.5 * products);                 // q k^T / sqrt(d)
  const Tensor p = named("probabilities", softmax(scores));              // each row adds up to 1
  const Tensor y = named("y", matmul(p, v));                             // a mean of v, weighed by p
  const Tensor loss = sum(y);
  tape.backward(loss);
  return PassRecord(tape, numbers.with({{"loss", loss}}));
}

}  // namespace

const Lesson attention_lesson = {
    .name = "attention",
    .title = "Attention: who looks where, and who learns from it",
    .look_at =
        "Token 0 looks everywhere, token 1 prefers key 2, token 2 looks at key 0 alone. All three get the "
        "same gradient of their probabilities, 3 0 -3. The gradient of the scores is P (dP - the mean of "
        "dP under P): 1 0 -1 for token 0, and nearly nothing for token 2.",
    .question = "Token 2 gets nearly no gradient. So it looks at the right key?",
    .answer =
        "No: every row was asked to look at key 2, where v is smallest. A softmax that has settled on one "
        "key passes no gradient on, right or wrong: the others have P = 0, and for that one dP is the mean "
        "itself. To keep scores small at the start, q k^T is divided by sqrt(d).",
    .run = run,
};

}  // namespace tessera
