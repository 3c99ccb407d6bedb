// Lesson 9: spatial decay, fixed (RMT; Fan et al., 2024) and by content (Spatial Decay Transformer; Mao et
// al., 2025). A bias that falls with the distance of two patches is added to the score, so that probabilities
// fall by a factor a step: gamma^d.
//
// Four patches lie in a square, 0 1 above 2 3; the distance d is counted along rows and columns. All products
// q k^T are 0, so that the decay alone decides. Fixed: gamma = 1/2 for every pair. By content: each token has
// a gate g, the sigmoid of a number that is computed from the token, and a pair falls by sqrt(g_i g_j) a
// step. Tokens 0 to 2 have the gate 1/2, token 3 has 4/5. v is 1 for token 3 alone: y says how well each sees
// it.

#include "engine/ops/attention/decay.h"

#include "apps/inspector/lessons/lessons.h"
#include "engine/autograd/observe.h"
#include "engine/ops/activations.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/matmul.h"
#include "engine/ops/reduce.h"
#include "engine/ops/softmax.h"

namespace tessera {

namespace {

constexpr Grid square_of_four{2, 2};
constexpr double log2 = 0.6931471805599453, log4 = 2 * log2;
const std::string fixed = "fixed", content = "content";  // the names of the two halves

// How much of token 3 all tokens see.
Tensor seen(const Tensor& scores, const Tensor& v) {
  const Tensor p = named("probabilities", softmax(named("scores", scores)));
  return named("seen", sum(named("y", matmul(p, v))));
}

PassRecord run(Numbers& numbers) {
  const Tensor products =
      numbers.leaf("products", {1, 1, 4, 4}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  const Tensor v = numbers.constant("v", {4, 1}, {0, 0, 0, 1});
  const Tensor slope = numbers.constant("fixed.slope", {1}, {log2});       // -log(gamma), gamma = 1/2
  const Tensor x = numbers.leaf("content.x", {1, 4, 1}, {0, 0, 0, log4});  // sigmoid: 1/2 1/2 1/2 4/5
  const bool decays = numbers.has("decay");

  Tape tape;
  tape.keep_all();
  const Tensor constant = fixed_decay(slope, square_of_four, 0);  // [1, 4, 4]: -d log 2
  Tensor by_distance, by_content;
  {
    const ModuleScope here(fixed);
    by_distance = seen(decays ? products + constant : 1.0 * products, v);
  }
  {
    const ModuleScope here(content);
    const Tensor gates = named("gates", log_sigmoid(x));                        // log g
    const Tensor decay = named("decay", content_decay(gates, square_of_four));  // d (log g_i + log g_j) / 2
    by_content = seen(decays ? products + decay : 1.0 * products, v);
  }
  const Tensor loss = by_distance + by_content;
  tape.backward(loss);
  return PassRecord(tape, numbers.with({{"fixed.decay", constant}, {"loss", loss}}));
}

}  // namespace

const Lesson decay_lesson = {
    .name = "decay",
    .title = "Spatial decay: fixed, and by content",
    .look_at =
        "In fixed.probabilities the row of token 0 is 4 : 2 : 2 : 1, a half for each step of distance. In "
        "content.probabilities token 3 has the gate 4/5, so all others see it better: token 0, two steps "
        "away, gives it 0.4 of what it gives itself instead of 0.25. Only the gates learn: the fixed slope "
        "is a constant.",
    .question = "The scores on the diagonal have a gradient, but the gates get nothing from them. Why?",
    .answer =
        "A token's distance to itself is 0, and the decay is d times the gates: no gate changes that score. "
        "A gate hears of pairs with d > 0 alone, and at distance 2 twice as loudly.",
    .run = run,
    .term = {"decay", "decays"},
};

}  // namespace tessera
