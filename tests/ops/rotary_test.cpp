#include "engine/ops/rotary.h"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/check/gradient_check.h"
#include "engine/core/error.h"

using namespace tessera;

TEST_CASE("rotary turns token p's first pair by p radians") {
  const Tensor x = Tensor::from({1, 0, 1, 0, 1, 0, 1, 0}, {2, 4});
  const auto turns = [](int64_t tokens, int64_t head_dim) {
    return turns_of(raster_angles(tokens, head_dim), DType::f32);
  };
  const std::vector<double> y = rotary(x, turns(2, 4)).values();
  CHECK(y[0] == 1);
  CHECK(y[4] == doctest::Approx(std::cos(1.0)));
  CHECK(y[5] == doctest::Approx(std::sin(1.0)));
  CHECK(y[6] == doctest::Approx(std::cos(1e-4)));
  CHECK_THROWS_WITH_AS(rotary(x, turns(3, 4)), doctest::Contains("of 3 tokens and heads of 4 channels"),
                       Error);
  CHECK_THROWS_WITH_AS(rotary(x, turns(2, 8)), doctest::Contains("of 2 tokens and heads of 8 channels"),
                       Error);
  CHECK_THROWS_WITH_AS(rotary(x, turns_of(raster_angles(2, 4), DType::f64)),
                       "rotary: input f32 takes turns f32, not f64", Error);
  CHECK_THROWS_WITH_AS(raster_angles(2, 3),
                       doctest::Contains("rotary: a head of 3 channels has no whole pairs"), Error);
}
