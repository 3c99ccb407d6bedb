// Lesson 12: a whole transformer block, x + attention(norm(x)), then x + mlp(norm(x)).
//
// Three tokens of width 4, one head of width 2, and an MLP with four hidden units. Token 0 stands for the
// class token: the loss reads it alone, as the head of a classifier does behind the last block. With these
// weights token 0 looks at token 1, and token 1 at token 2. The scale of the scores is 1, and eps of the
// norms is 0, so that numbers stay round.

#include "apps/inspector/lessons/lessons.h"
#include "engine/autograd/observe.h"
#include "engine/ops/activations.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/linear.h"
#include "engine/ops/matmul.h"
#include "engine/ops/norm.h"
#include "engine/ops/reduce.h"
#include "engine/ops/shape.h"
#include "engine/ops/softmax.h"

namespace tessera {

namespace {

const std::string norm1 = "norm1", attn = "attn", norm2 = "norm2", mlp = "mlp";

Tensor normed(Numbers& numbers, const std::string& module, const Tensor& x) {
  const Tensor weight = numbers.leaf(module + ".weight", {4}, {1, 1, 1, 1});
  const Tensor bias = numbers.leaf(module + ".bias", {4}, {0, 0, 0, 0});
  const ModuleScope here(module);
  return layer_norm(x, weight, bias, 0);
}

Tensor attended(Numbers& numbers, const Tensor& x) {
  const Tensor q_weight = numbers.leaf("attn.q.weight", {2, 4},
                                       {0.25, 0.25, -0.25, -0.25,  //
                                        0.25, -0.25, 0.25, -0.25});
  const Tensor k_weight = numbers.leaf("attn.k.weight", {2, 4},
                                       {0.5, -0.5, 0.5, -0.5,  //
                                        0.5, -0.5, -0.5, 0.5});
  const Tensor v_weight = numbers.leaf("attn.v.weight", {2, 4},
                                       {0.5, -0.5, 0.5, -0.5,  //
                                        0.5, -0.5, -0.5, 0.5});
  const Tensor proj_weight = numbers.leaf("attn.proj.weight", {4, 2},
                                          {1, 0,  //
                                           0, 1,  //
                                           1, 0,  //
                                           0, 1});
  const ModuleScope here(attn);
  const Tensor q = named("q", linear(x, q_weight, {}));  // 1 0, 0 1, 0 0
  const Tensor k = named("k", linear(x, k_weight, {}));  // 0 0, 2 0, 0 2
  const Tensor v = named("v", linear(x, v_weight, {}));
  const Tensor scores = named("scores", matmul(q, k, false, true));  // [3, 3]
  const Tensor p = named("probabilities", softmax(scores));
  return linear(named("head", matmul(p, v)), proj_weight, {});  // [3, 4]
}

Tensor mlp_of(Numbers& numbers, const Tensor& x) {
  const Tensor fc1_weight = numbers.leaf("mlp.fc1.weight", {4, 4},
                                         {1, 0, 0, 0,  //
                                          0, 1, 0, 0,  //
                                          0, 0, 1, 0,  //
                                          -1, 0, 0, 1});
  const Tensor fc1_bias = numbers.leaf("mlp.fc1.bias", {4}, {0, 0, 0, 0});
  const Tensor fc2_weight = numbers.leaf("mlp.fc2.weight", {4, 4},
                                         {0.5, 0, 0, 0.5,  //
                                          0, 0.5, 0, 0,    //
                                          0, 0, 0.5, 0,    //
                                          0, 0, 0, -0.5});
  const Tensor fc2_bias = numbers.leaf("mlp.fc2.bias", {4}, {0, 0, 0, 0});
  const ModuleScope here(mlp);
  const Tensor hidden = named("hidden", linear(x, fc1_weight, fc1_bias));  // [3, 4]
  return linear(named("active", gelu(hidden)), fc2_weight, fc2_bias);      // [3, 4]
}

PassRecord run(Numbers& numbers) {
  const Tensor x = numbers.leaf("x", {3, 4},
                                {1, 1, -1, -1,  // the class token
                                 1, -1, 1, -1,  //
                                 3, -3, -3, 3});
  const Tensor target = numbers.constant("target", {1, 4}, {1, 0, 0, 1});

  Tape tape;
  tape.keep_all();
  const Tensor between = named("between", x + attended(numbers, normed(numbers, norm1, x)));
  const Tensor out = named("out", between + mlp_of(numbers, normed(numbers, norm2, between)));
  const Tensor error = named("error", named("first", slice(out, 0, 0, 1)) - target);
  const Tensor total = named("total", sum(named("squares", square(error))));
  const Tensor loss = 0.5 * total;
  tape.backward(loss);
  return PassRecord(tape, numbers.with({{"loss", loss}}));
}

}  // namespace

const Lesson block_lesson = {
    .name = "block",
    .title = "A transformer block, forward and backward",
    .look_at =
        "The loss reads token 0 alone. At each sum the gradient goes two ways: unchanged along x, and once "
        "more through the branch, so that even the first block of a deep model hears of the loss. Tokens 1 "
        "and 2 hear of it only through the keys and values of attention: their rows of the MLP are 0.",
    .question = "The queries of tokens 1 and 2 get the gradient 0, their keys and values do not. Why?",
    .answer =
        "A query decides where its own token looks, and what tokens 1 and 2 see is never read. Their keys "
        "and values are what token 0 looks at. In the last block of a ViT this holds for all patches.",
    .run = run,
};

}  // namespace tessera
