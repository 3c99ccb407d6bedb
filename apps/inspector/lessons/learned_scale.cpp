// Lesson 6: the learned scale of locality self-attention (LSA; Lee et al., "Vision Transformer for Small-Size
// Datasets", 2021). Each head multiplies q k^T by a number of its own, which starts at 1 / sqrt(d).
//
// Two heads have the same query and the same three keys of width 4, so both scales started at 1/2. Training
// has moved them to 1 and 1/4. v is 1 for key 0 and 0 for the others: y is the probability of key 0. The loss
// wants it to be 1 in head 0, but 1/4 in head 1.

#include "apps/inspector/lessons/lessons.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/matmul.h"
#include "engine/ops/reduce.h"
#include "engine/ops/softmax.h"

namespace tessera {

namespace {

PassRecord run(Numbers& numbers) {
  const Tensor q = numbers.leaf("q", {2, 1, 4},
                                {1, 1, 1, 1,  // [head, query, d]
                                 1, 1, 1, 1});
  const Tensor k = numbers.leaf("k", {2, 3, 4}, {1, 1, 1, 1, 1, -1, 1, -1, 1, -1, -1, -1,  //
                                                 1, 1, 1, 1, 1, -1, 1, -1, 1, -1, -1, -1});
  const Tensor v = numbers.constant("v", {3, 1}, {1, 0, 0});
  const Tensor scale_of_head = numbers.leaf("scale", {2}, {1, 0.25});
  const Tensor target = numbers.constant("target", {2, 1, 1}, {1, 0.25});

  Tape tape;
  tape.keep_all();
  const Tensor products = named("products", matmul(q, k, false, true));  // [2, 1, 3]: 4 0 -2 in both heads
  const Tensor scores = named("scores", numbers.has("learned-scale")     //
                                            ? products * scale_of_head.reshape({2, 1, 1})
                                            : 0.5 * products);
  const Tensor p = named("probabilities", softmax(scores));
  const Tensor y = named("y", matmul(p, v));
  const Tensor error = named("error", y - target);
  const Tensor total = named("total", sum(named("squares", square(error))));
  const Tensor loss = 0.5 * total;
  tape.backward(loss);
  return PassRecord(tape, numbers.with({{"loss", loss}}));
}

}  // namespace

const Lesson learned_scale_lesson = {
    .name = "learned-scale",
    .title = "LSA: each head learns how sharply it looks",
    .look_at =
        "Both heads have the products 4 0 -2. The scale 1 makes head 0 look sharply, 0.25 makes head 1 look "
        "around. The gradient of a scale is the sum of dscores times products: below 0 in head 0, which "
        "should look more sharply still, above 0 in head 1, which should look around more.",
    .question = "Key 1 has no part in the gradient of the scales, though its score has a gradient. Why?",
    .answer =
        "Its product q k is 0, and no scale changes 0: in the sum of dscores times products its term is 0.",
    .run = run,
    .term = {"learned-scale", "learned scale"},
};

}  // namespace tessera
