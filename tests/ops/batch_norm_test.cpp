#include "engine/ops/batch_norm.h"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/check/gradient_check.h"
#include "engine/core/error.h"

using namespace tessera;

TEST_CASE("training norms by the batch and moves the running statistics, the variance unbiased") {
  const Tensor x = Tensor::from({1, 3, 5, 7}, {4, 1}, DType::f64);
  const Tensor one = Tensor::full({1}, 1, DType::f64), zero = Tensor::zeros({1}, DType::f64);
  const Tensor mean = Tensor::full({1}, 10, DType::f64), var = Tensor::full({1}, 2, DType::f64);
  const Tensor y = batch_norm(x, one, zero, mean, var, {.training = true, .momentum = 0.1, .eps = 0});
  CHECK(y.values()[0] == doctest::Approx(-3 / std::sqrt(5.0)));
  CHECK(mean.item() == doctest::Approx(0.9 * 10 + 0.1 * 4));
  CHECK(var.item() == doctest::Approx(0.9 * 2 + 0.1 * 20.0 / 3));
}

TEST_CASE("the variance is right where the mean is large, and where the first rows lie far from the others") {
  constexpr int64_t rows = 6400;
  std::vector<double> values;
  for (int64_t i = 0; i < rows; ++i) values.push_back(1000 + 0.01 * static_cast<double>(i % 7 - 3));
  for (int64_t i = 0; i < 100; ++i) values[static_cast<size_t>(i)] += 50;
  double expected_mean = 0, expected_variance = 0;
  for (const double value : values) expected_mean += value / rows;
  for (const double value : values)
    expected_variance += (value - expected_mean) * (value - expected_mean) / rows;
  const Tensor x = Tensor::from(values, {rows, 1}, DType::f32), zero = Tensor::zeros({1});
  const Tensor mean = Tensor::zeros({1}), var = Tensor::zeros({1});
  batch_norm(x, Tensor::full({1}, 1), zero, mean, var, {.training = true, .momentum = 1});
  CHECK(mean.item() == doctest::Approx(expected_mean).epsilon(1e-7));
  CHECK(var.item() == doctest::Approx(expected_variance * rows / (rows - 1)).epsilon(1e-4));
}

TEST_CASE("evaluation norms by the running statistics and leaves them") {
  const Tensor x = Tensor::from({1, 3}, {2, 1});
  const Tensor mean = Tensor::full({1}, 1), var = Tensor::full({1}, 4);
  const Tensor y = batch_norm(x, Tensor::full({1}, 2), Tensor::full({1}, 5), mean, var, {.eps = 0});
  CHECK(y.values() == std::vector<double>{5, 7});
  CHECK(mean.item() == 1);
  CHECK(var.item() == 4);
}

TEST_CASE("batch norm names what does not fit") {
  const Tensor x = Tensor::zeros({2, 3}), c = Tensor::zeros({3});
  CHECK_THROWS_WITH_AS(batch_norm(x, Tensor::zeros({2}), c, c, c, {}),
                       doctest::Contains("takes weight f32 [3], not f32 [2]"), Error);
  CHECK_THROWS_WITH_AS(batch_norm(Tensor::zeros({1, 3}), c, c, c, c, {.training = true}),
                       doctest::Contains("batch_norm: input [1, 3] has one row a channel"), Error);
}
