#include "engine/ops/norm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "engine/check/gradient_check.h"
#include "engine/core/error.h"
#include "engine/ops/elementwise.h"
#include "tests/cuda.h"

using namespace tessera;

TEST_CASE("layer norm norms each row by its own mean and biased variance") {
  const Tensor x = Tensor::from({1, 3, 10, 10}, {2, 2}, DType::f64);
  const Tensor weight = Tensor::from({2, 3}, {2}, DType::f64), bias = Tensor::from({5, 7}, {2}, DType::f64);
  CHECK(layer_norm(x, weight, bias, 0.5).values()[0] == doctest::Approx(5 - 2 / std::sqrt(1.5)));
  CHECK(layer_norm(x, weight, bias, 0.5).values()[1] == doctest::Approx(7 + 3 / std::sqrt(1.5)));
  CHECK(layer_norm(x, weight, bias, 0.5).values()[2] == 5);
  CHECK(layer_norm(x, weight, bias, 0.5).values()[3] == 7);
}

TEST_CASE("layer norm finds equal numbers equal, on the CPU and with cuda") {
  for (const Device device : {Device::cpu, Device::cuda}) {
    if (device == Device::cuda && !cuda_here()) continue;
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const int64_t width : {1, 9, 75, 1030}) {
        CAPTURE(dtype);
        CAPTURE(width);
        const auto full = [&](int64_t rows, double value) {
          return Tensor::full({rows, width}, value).to(dtype).to(device);
        };
        const Tensor one = full(1, 1).reshape({width}), zero = full(1, 0).reshape({width});
        const std::vector<double> y = layer_norm(full(2, 123.7), one, zero, 1e-5).values();
        CHECK(std::all_of(y.begin(), y.end(), [](double each) { return each == 0; }));
      }
  }
}

TEST_CASE("layer norm in bf16 is that in double, rounded, and its statistics are floats") {
  for (const int64_t width : {1, 2, 15, 32, 33, 63, 200}) {
    CAPTURE(width);
    const auto some = [&](const Shape& shape, uint64_t seed) {
      return add(random_tensor(shape, seed), Tensor::full({1}, 3).to(DType::f64)).to(DType::bf16);
    };
    const Tensor x = some({5, width}, 1), weight = some({width}, 2), bias = some({width}, 3);
    x.data<bf16>()[2 * width] = bf16(std::nanf(""));
    const std::vector<double>
        y = layer_norm(x, weight, bias, 1e-5).values(),
        wanted = layer_norm(x.to(DType::f64), weight.to(DType::f64), bias.to(DType::f64), 1e-5).values();
    double worst = 0;
    int64_t not_numbers = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      not_numbers += std::isnan(y[i]);
      if (!std::isnan(wanted[i]))
        worst = std::max(worst, std::abs(y[i] - wanted[i]) - std::abs(wanted[i]) / 256);
    }
    CHECK(worst < 1e-5);
    CHECK(not_numbers == width);
  }
}

TEST_CASE("layer norm names what does not fit") {
  const Tensor c = Tensor::zeros({3});
  CHECK_THROWS_WITH_AS(
      layer_norm(Tensor::zeros({2, 3}), Tensor::zeros({2}), c, 1e-5),
      doctest::Contains("layer_norm: input f32 [2, 3] takes weight and bias f32 [3], not f32 [2]"), Error);
  CHECK_THROWS_WITH_AS(
      layer_norm(Tensor::zeros({2, 3}), c, Tensor::zeros({3}, DType::f64), 1e-5),
      doctest::Contains("layer_norm: input f32 [2, 3] takes weight and bias f32 [3], not f64 [3]"), Error);
}
