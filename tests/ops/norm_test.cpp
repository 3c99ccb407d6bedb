#include "engine/ops/norm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "engine/check/gradient_check.h"
#include "engine/core/error.h"
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
    for (const int64_t width : {9, 75, 1030}) {
      const Tensor x = Tensor::full({2, width}, 0.3).to(device), one = Tensor::full({width}, 1).to(device),
                   zero = Tensor::zeros({width}).to(device);
      const std::vector<double> y = layer_norm(x, one, zero, 1e-5).values();
      CHECK(std::all_of(y.begin(), y.end(), [](double each) { return each == 0; }));
    }
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
