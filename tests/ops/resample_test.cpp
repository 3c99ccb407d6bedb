#include "engine/ops/resample.h"

#include <doctest/doctest.h>

#include "engine/check/gradient_check.h"
#include "engine/core/error.h"

using namespace tessera;

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
  CHECK_THROWS_WITH_AS(resample(x, bilinear_taps(2, 2), bilinear_taps(2, 2)),
                       doctest::Contains("resample: input"), Error);
  CHECK_THROWS_WITH_AS(resample(x, bilinear_taps(1, 1), Taps{{{{2, 1.0}}}, 2}),
                       "resample: a tap from entry 2 of 2", Error);
  CHECK_THROWS_WITH_AS(bilinear_taps(0, 2),
                       doctest::Contains("resample: from 0 to 2 entries; both must be positive"), Error);
}
