// Ops that move or mix the places of a map: take, resample, rotary.

#include <doctest/doctest.h>

#include <cmath>

#include "engine/check/gradient_check.h"
#include "engine/core/error.h"
#include "engine/ops/resample.h"
#include "engine/ops/rotary.h"
#include "engine/ops/take.h"

using namespace tessera;

TEST_CASE("take, resample and rotary pass every check of their cases") {
  for (const auto family : {take_cases, resample_cases, rotary_cases})
    for (const OpCase& c : family()) {
      CAPTURE(c.name());
      for (const std::string& failure : check_case(c)) FAIL_CHECK(failure);
    }
}

TEST_CASE("take puts entries in another order and refuses those that are not there") {
  const Tensor x = Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto index = [](std::vector<int64_t> of) {
    return Tensor::from(of, {static_cast<int64_t>(of.size())});
  };
  CHECK(take(x, 1, index({2, 0})).values() == std::vector<double>{3, 1, 6, 4});
  CHECK(take(x, 0, index({1, 1})).values() == std::vector<double>{4, 5, 6, 4, 5, 6});
  CHECK(flip(x, 1).values() == std::vector<double>{3, 2, 1, 6, 5, 4});
  CHECK(flip(x, 0).values() == std::vector<double>{4, 5, 6, 1, 2, 3});
  CHECK_THROWS_WITH_AS(take(x, 1, index({0, 3})), "take: index 3 of axis 1 of [2, 3], which has 0 to 2",
                       Error);
  CHECK_THROWS_AS(take(x, 1, index({-1})), Error);
  CHECK_THROWS_AS(take(x, 1, Tensor::zeros({1})), Error);
}

TEST_CASE("resampling by hand") {
  const Tensor x = Tensor::from({0, 4}, {1, 1, 2, 1});
  CHECK(resample(x, bilinear_taps(1, 1), bilinear_taps(2, 4)).values() == std::vector<double>{0, 1, 3, 4});
  CHECK(resample(x, bilinear_taps(1, 2), bilinear_taps(2, 1)).values() == std::vector<double>{2, 2});
  const Tensor row = Tensor::from({1, 2, 3, 4, 5}, {1, 5, 1, 1});
  CHECK(resample(row, average_taps(5, 2), average_taps(1, 1)).values() == std::vector<double>{2, 4});
  for (const auto& of_one : bicubic_taps(5, 8).of) {
    double sum = 0;
    for (const Taps::Tap& tap : of_one) sum += tap.weight;
    CHECK(sum == doctest::Approx(1));
  }
  CHECK_THROWS_AS(resample(x, bilinear_taps(2, 2), bilinear_taps(2, 2)), Error);
  CHECK_THROWS_AS(bilinear_taps(0, 2), Error);
}

TEST_CASE("rotary turns token p's first pair by p radians") {
  const Tensor x = Tensor::from({1, 0, 1, 0, 1, 0, 1, 0}, {2, 4});
  const std::vector<double> y = rotary(x, raster_angles(2, 4)).values();
  CHECK(y[0] == 1);
  CHECK(y[4] == doctest::Approx(std::cos(1.0)));
  CHECK(y[5] == doctest::Approx(std::sin(1.0)));
  CHECK(y[6] == doctest::Approx(std::cos(1e-4)));
  CHECK_THROWS_AS(rotary(x, raster_angles(3, 4)), Error);
  CHECK_THROWS_AS(rotary(x, raster_angles(2, 8)), Error);
  CHECK_THROWS_AS(raster_angles(2, 3), Error);
}
