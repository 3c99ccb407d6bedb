#include "engine/optim/mixed.h"

#include <doctest/doctest.h>

#include "engine/autograd/tape.h"
#include "engine/core/error.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/reduce.h"

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

TEST_CASE("mixed: other pairs are refused") {
  const Tensor f32 = Tensor::zeros({3}).require_grad(), other = Tensor::zeros({3}).require_grad();
  CHECK_THROWS_WITH_AS(MixedWeights({{f32, other}}),
                       "mixed: f32 [3] on cpu and f32 [3] on cpu are no f32 leaf and its bf16 one", Error);
  CHECK_THROWS_WITH_AS(MixedWeights({}), "mixed: there are no weights", Error);
}
