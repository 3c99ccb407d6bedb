#include "engine/ops/attention/decay.h"

#include <doctest/doctest.h>

#include "engine/check/op_case.h"
#include "engine/core/error.h"

using namespace tessera;

TEST_CASE("distances are Manhattan's on the grid and zero for the tokens before it") {
  const std::vector<double> square{0, 1, 1, 2, 1, 0, 2, 1, 1, 2, 0, 1, 2, 1, 1, 0};
  CHECK(distances({2, 2}, 0, true, DType::f64).values() == square);
  CHECK(distances({1, 2}, 1, true, DType::f32).values() == std::vector<double>{0, 0, 0, 0, 0, 1, 0, 1, 0});
  CHECK(distances({1, 2}, 1, false, DType::f32).values() == std::vector<double>{0, 0, 0, 0, 1, 1, 0, 1, 1});
  CHECK_THROWS_WITH_AS(distances({0, 2}, 1, true, DType::f32),
                       doctest::Contains("decay: a grid of 0 x 2 after a prefix of 1"), Error);
  CHECK_THROWS_WITH_AS(distances({1, 2}, -1, true, DType::f32),
                       doctest::Contains("decay: a grid of 1 x 2 after a prefix of -1"), Error);
}

TEST_CASE("fixed decay takes a head's slope off for each step") {
  const Tensor decay = fixed_decay(Tensor::from({0.5, 2}, {2}), {1, 2}, 1);
  CHECK(decay.shape() == Shape{2, 3, 3});
  CHECK(decay.values() == std::vector<double>{0, 0, 0, 0, 0, -0.5, 0, -0.5, 0, 0, 0, 0, 0, 0, -2, 0, -2, 0});
  CHECK_THROWS_WITH_AS(fixed_decay(Tensor::zeros({2, 1}), {1, 2}, 0),
                       doctest::Contains("fixed_decay: slopes [2, 1] are not one a head, [H]"), Error);
}

TEST_CASE("content decay is the mean of two gates times their distance") {
  const Tensor gates = Tensor::from({-9, -1, -3}, {1, 3, 1});  // the class token's gate has no effect
  CHECK(content_decay(gates, {1, 2}, 1, 0.5).values() == std::vector<double>{0, 0, 0, 0, 0, -1, 0, -1, 0});
  CHECK(content_decay(gates, {1, 2}, 1, 0.5, false).values() ==
        std::vector<double>{0, 0, 0, 0, -0.5, -1, 0, -1, -1.5});
  CHECK_THROWS_WITH_AS(content_decay(gates, {2, 2}),
                       "content_decay: gates [1, 3, 1] of 3 tokens, but 0 and a grid of 2 x 2 make 4", Error);
  CHECK_THROWS_WITH_AS(content_decay(Tensor::zeros({3, 1}), {1, 3}),
                       doctest::Contains("content_decay: gates [3, 1] are not [B, N, H]"), Error);
}
