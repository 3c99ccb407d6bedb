// Lesson 11: one step of AdamW (Loshchilov and Hutter, 2019), which turns gradients into new weights.
//
// Three weights of 1 have gradients of very different size: 4, 0.04 and 0. It is the first step (t = 1), so
// both moments are 0 before it. An optimizer's step is no part of the loss: it runs after the backward pass,
// and nothing flows back through it. The program therefore asks for the gradient first, with a tape of its
// own, and then records the loss and, in the module `adamw`, the step, number by number.

#include "apps/inspector/lessons/lessons.h"
#include "engine/autograd/observe.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"

namespace tessera {

namespace {

const std::string adamw = "adamw";

// Half the sum of curvature * w^2, whose gradient is curvature * w.
Tensor loss_of(const Tensor& w, const Tensor& curvature) {
  return 0.5 * named("total", sum(named("terms", curvature * named("squares", square(w)))));
}

Tensor gradient_of(const Tensor& w, const Tensor& curvature) {
  Tape tape;
  tape.backward(loss_of(w, curvature));
  const Tensor gradient = w.grad().clone();
  w.zero_grad();
  return gradient;
}

PassRecord run(Numbers& numbers) {
  const Tensor w = numbers.leaf("w", {3}, {1, 1, 1});
  const Tensor curvature = numbers.constant("curvature", {3}, {4, 0.04, 0});
  const Tensor m_before = numbers.leaf("m_before", {3}, {0, 0, 0});
  const Tensor v_before = numbers.leaf("v_before", {3}, {0, 0, 0});
  const double rate = 0.1, decay = 0.1, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  const Tensor g =
      gradient_of(w, curvature).require_grad();  // a leaf, so that the tape writes down its steps

  Tape tape;
  tape.keep_all();
  const Tensor loss = loss_of(w, curvature);
  Tensor w_after;
  {
    const ModuleScope here(adamw);
    const Tensor m_kept = named("m_kept", beta1 * m_before);
    const Tensor m = named("m", m_kept + named("m_new", (1 - beta1) * g));
    const Tensor v_kept = named("v_kept", beta2 * v_before);
    const Tensor g_squared = named("g_squared", square(g));
    const Tensor v = named("v", v_kept + named("v_new", (1 - beta2) * g_squared));
    const Tensor m_hat = named("m_hat", m / (1 - beta1));  // 1 - beta^t, t = 1: undoes the start at 0
    const Tensor v_hat = named("v_hat", v / (1 - beta2));
    const Tensor size = named("size", named("root", sqrt(v_hat)) + eps);
    const Tensor direction = named("direction", m_hat / size);    // 1 1 0
    const Tensor kept = named("w_kept", (1 - rate * decay) * w);  // weight decay: 0.99 w
    w_after = kept - named("update", rate * direction);
  }
  tape.backward(loss);
  return PassRecord(tape, numbers.with({{"gradient", g}, {"loss", loss}, {"w_after", w_after}}));
}

}  // namespace

const Lesson adamw_lesson = {
    .name = "adamw",
    .title = "AdamW: from a gradient to a step",
    .look_at =
        "The gradients of w are 4, 0.04 and 0. AdamW divides the mean gradient (m) by the root of the mean "
        "square (v), so the first two weights take the same step, 0.1, though one gradient is a hundred "
        "times the other. The steps of adamw run after the backward pass; no gradient flows through them.",
    .question = "The third weight has the gradient 0. Why does it change?",
    .answer =
        "By weight decay alone: w is multiplied by 1 - rate * decay = 0.99, whatever its gradient. In AdamW "
        "decay is apart from the gradient; in Adam it would be added to the gradient and divided by the root "
        "as well.",
    .run = run,
};

}  // namespace tessera
