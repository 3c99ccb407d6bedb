#include "models/parts/positions.h"

#include <doctest/doctest.h>

#include "engine/check/op_case.h"
#include "engine/core/error.h"

using namespace tessera;

TEST_CASE("positions: the same grid is the identity, a constant stays one, the class token's row stays") {
  const Tensor x = random_tensor({1, 7, 3}, 1);
  const std::vector<double> same = resize_pos_embed(x, {2, 3}, {2, 3}, 1).values(), before = x.values();
  for (size_t i = 0; i < same.size(); ++i) CHECK(same[i] == doctest::Approx(before[i]).epsilon(1e-12));
  const Tensor larger = resize_pos_embed(Tensor::full({1, 6, 3}, 2, DType::f64), {2, 3}, {5, 4}, 0);
  CHECK(larger.shape() == Shape{1, 20, 3});
  for (const double value : larger.values()) CHECK(value == doctest::Approx(2));
  CHECK(resize_pos_embed(x, {2, 3}, {4, 4}, 1).values()[2] == before[2]);
  CHECK_THROWS_WITH_AS(resize_pos_embed(x, {2, 3}, {4, 4}, 0),
                       "positions: [1, 7, 3] is no embedding of 0 tokens and a grid of 2 x 3", Error);
}
