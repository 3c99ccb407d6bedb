#include "apps/training/number_watch.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace tessera;

TEST_CASE("numbers that are not finite are counted by their kind, and the first is placed") {
  const double nan = std::nan(""), inf = INFINITY;
  const auto said = [](const std::vector<double>& values, DType dtype, bool mask = false) {
    return not_finite(Tensor::from(values, {2, 2}, dtype), mask);
  };
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    CAPTURE(name(dtype));
    CHECK(said({1, 2, -3, 0}, dtype) == std::nullopt);
    CHECK(said({1, nan, nan, 0}, dtype) == "2 of its 4 numbers are NaN, the first at [0, 1]");
    CHECK(said({1, 2, -inf, inf}, dtype) == "2 of its 4 numbers are infinite, the first at [1, 0]");
    CHECK(said({1, 2, -inf, nan}, dtype) == "1 of its 4 numbers are NaN and 1 infinite, the first at [1, 0]");
    CHECK(said({1, 2, -inf, 0}, dtype, true) == std::nullopt);
    CHECK(said({1, inf, -inf, 0}, dtype, true) == "1 of its 4 numbers are infinite, the first at [0, 1]");
    CHECK(said({nan, 2, -inf, 0}, dtype, true) == "1 of its 4 numbers are NaN, the first at [0, 0]");
  }
  CHECK(not_finite(Tensor()) == std::nullopt);
  CHECK(not_finite(Tensor::full({2}, 3, DType::i64)) == std::nullopt);
  CHECK(not_finite(Tensor::full({2}, 3, DType::u8)) == std::nullopt);
  CHECK(not_finite(Tensor::full({}, nan)) == "1 of its 1 numbers are NaN, the first at []");
}

TEST_CASE("of several tensors the first that is not finite is named") {
  const Tensor good = Tensor::full({2}, 1), bad = Tensor::full({3}, INFINITY);
  CHECK(first_not_finite({{"a", good}, {"b", good}}) == std::nullopt);
  CHECK(first_not_finite({{"a", good}, {"b", bad}, {"c", bad}}) ==
        "'b', [3]: 3 of its 3 numbers are infinite, the first at [0]");
}
