#include "engine/optim/mixed.h"

#include <doctest/doctest.h>

#include "engine/autograd/tape.h"
#include "engine/core/error.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"
#include "engine/optim/adamw.h"
#include "engine/optim/clip.h"
#include "engine/optim/sgd.h"

using namespace tessera;

TEST_CASE("mixed: weights are rounded, gradients widened") {
  const Tensor wide = Tensor::from({1.00390625, -2, 3.14159}, {3}).require_grad();
  const Tensor narrow = Tensor::zeros({3}, DType::bf16).require_grad();
  const Tensor idle = Tensor::from({5}, {1}).require_grad(),
               its_narrow = Tensor::zeros({1}, DType::bf16).require_grad();
  const MixedWeights mixed({{wide, narrow}, {idle, its_narrow}});
  mixed.narrow();
  CHECK(narrow.values() == wide.to(DType::bf16).values());
  for (int repeat = 0; repeat < 2; ++repeat) {
    wide.zero_grad();
    narrow.zero_grad();
    Tape tape;
    tape.backward(sum(square(narrow)));
    mixed.widen_gradients();
    CHECK(wide.grad().dtype() == DType::f32);
    CHECK(wide.grad().values() == narrow.grad().values());
    CHECK_FALSE(idle.grad().defined());
  }
}

TEST_CASE("mixed: the gradients of the parts of a batch add up in f32") {
  const Tensor wide = Tensor::zeros({2}).require_grad(),
               narrow = Tensor::zeros({2}, DType::bf16).require_grad();
  const MixedWeights mixed({{wide, narrow}});
  wide.zero_grad();
  for (const double factor : {256.0, 1.0, 0.5}) {  // 257.5 has more than bf16's 8 bits
    narrow.zero_grad();
    Tape tape;
    tape.backward(sum(scale(narrow, factor)));
    mixed.widen_gradients();
  }
  CHECK(wide.grad().values() == std::vector<double>{257.5, 257.5});
}

namespace {

// The weights after three steps of the rule, whose gradients are lent or widened.
template <class Rule, class Options> std::vector<double> after_steps(const Options& options, bool lends) {
  const Tensor wide = Tensor::from({1.5, -2, 3.14159}, {3}).require_grad(),
               narrow = Tensor::zeros({3}, DType::bf16).require_grad();
  const MixedWeights mixed({{wide, narrow}});
  Rule rule({{{{"weight", wide}}}}, options);
  for (const double factor : {0.3, -1.7, 0.9}) {
    mixed.narrow();
    wide.zero_grad();
    narrow.zero_grad();
    Tape tape;
    tape.backward(sum(scale(square(narrow), factor)));
    lends ? mixed.lend_gradients() : mixed.widen_gradients();
    CHECK(wide.grad().dtype() == (lends ? DType::bf16 : DType::f32));
    const Tensor norm = Tensor::zeros({3}, DType::f64);
    clip_on_device({wide}, 0, 1e9, norm);
    CHECK(norm.values()[0] == gradient_norm({narrow}));
    rule.step(0.1, norm.rows(1, 1));
  }
  return wide.values();
}

}  // namespace

TEST_CASE("mixed: a step has the same bits by lent gradients as by widened ones") {
  CHECK(after_steps<AdamW>(AdamW::Options{}, true) == after_steps<AdamW>(AdamW::Options{}, false));
  const Sgd::Options momentum{.momentum = 0.9};
  CHECK(after_steps<Sgd>(momentum, true) == after_steps<Sgd>(momentum, false));
}

TEST_CASE("mixed: a lent gradient ends with zero_grad, and until then none is added to it") {
  const Tensor wide = Tensor::from({1, 2}, {2}).require_grad(),
               narrow = Tensor::from({1, 2}, {2}, DType::bf16).require_grad();
  const MixedWeights mixed({{wide, narrow}});
  const auto backward = [](const Tensor& weight) {
    Tape tape;
    tape.backward(sum(square(weight)));
  };
  backward(narrow);
  mixed.lend_gradients();
  CHECK_THROWS_WITH_AS(mixed.widen_gradients(),
                       "mixed: the f32 leaf [2] has a lent gradient, to which none can be added", Error);
  CHECK_THROWS_WITH_AS(backward(wide),
                       "tape: a leaf's gradient is lent by its bf16 copy; call zero_grad() before the next "
                       "backward pass",
                       Error);
  wide.zero_grad();
  CHECK_FALSE(wide.grad().defined());
  backward(wide);
  CHECK(wide.grad().dtype() == DType::f32);
  CHECK(wide.grad().values() == narrow.grad().values());
  CHECK_THROWS_WITH_AS(mixed.lend_gradients(),
                       "mixed: the f32 leaf [2] has a gradient already; call zero_grad(), or "
                       "widen_gradients() to add a micro-batch's",
                       Error);
}

TEST_CASE("mixed: other pairs are refused") {
  const Tensor f32 = Tensor::zeros({3}).require_grad(), other = Tensor::zeros({3}).require_grad();
  CHECK_THROWS_WITH_AS(MixedWeights({{f32, other}}),
                       "mixed: f32 [3] on cpu and f32 [3] on cpu are no f32 leaf and its bf16 one", Error);
  CHECK_THROWS_WITH_AS(MixedWeights({}), "mixed: there are no weights", Error);
}
