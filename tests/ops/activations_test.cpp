#include "engine/ops/activations.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>

#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"
#include "engine/core/error.h"
#include "engine/ops/activations_kernels.h"

using namespace tessera;

namespace {

// The largest relative error of f against the exact function at 200001 points of [low, high].
double worst(double low, double high, float (*f)(float), double (*exact)(double)) {
  double error = 0;
  for (int i = 0; i <= 200000; ++i) {
    const float x = static_cast<float>(low + (high - low) * i / 200000);
    const double y = exact(static_cast<double>(x));
    error = std::max(error, std::abs(static_cast<double>(f(x)) - y) / std::abs(y));
  }
  return error;
}

float fast_phi(float x) { return fast_normal(x).cumulative; }
double phi(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

}  // namespace

TEST_CASE("activations: values of every row of the table") {
  const std::map<Activation, std::vector<double>> at_minus_2_0_1{
      {Activation::relu, {0, 0, 1}},
      {Activation::gelu, {-0.045500263896358417, 0, 0.84134474606854293}},
      {Activation::gelu_tanh, {-0.045402305912221, 0, 0.841191990608280}},
      {Activation::silu, {-0.23840584404423515, 0, 0.7310585786300049}},
      {Activation::sigmoid, {0.11920292202211755, 0.5, 0.7310585786300049}},
      {Activation::log_sigmoid, {-2.1269280110429727, -0.6931471805599453, -0.31326168751822286}},
      {Activation::tanh, {-0.96402758007581688, 0, 0.76159415595576489}}};
  const Tensor x = Tensor::from({-2, 0, 1}, {3}, DType::f64);
  for (const Activation f : all_activations) {
    CAPTURE(name(f));
    REQUIRE(at_minus_2_0_1.contains(f));
    CHECK(relative_error(activation(f, x), Tensor::from(at_minus_2_0_1.at(f), {3}, DType::f64)) < 1e-12);
  }
  CHECK(activation(Activation::none, x).values() == x.values());
}

TEST_CASE("activations: the float functions are exact to a few units of the last place") {
  CHECK(worst(-86.89, 88.7, fast_exp, std::exp) < 2e-7);
  CHECK(worst(0.001, 1, fast_log1p, std::log1p) < 3e-7);
  CHECK(worst(-9, 9.0001, fast_tanh, std::tanh) < 4e-7);
  CHECK(worst(-3, 9, fast_phi, phi) < 6e-7);
  CHECK(worst(-12, -3, fast_phi, phi) < 6e-6);  // x^2 is rounded
}

TEST_CASE("activations: far out") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(fast_exp(-infinity) == 0);
  CHECK(fast_exp(infinity) == infinity);
  CHECK(fast_exp(0.0f) == 1);
  CHECK(std::isnan(fast_exp(std::nanf(""))));
  CHECK(std::isnan(fast_normal(std::nanf("")).cumulative));
  const Tensor x = Tensor::from({-1000, 1000}, {2});
  CHECK(sigmoid(x).values() == std::vector<double>{0, 1});
  CHECK(log_sigmoid(x).values() == std::vector<double>{-1000, 0});
  CHECK(gelu(x).values() == std::vector<double>{0, 1000});
  CHECK(gelu_tanh(x).values() == std::vector<double>{0, 1000});
  CHECK(silu(x).values() == std::vector<double>{0, 1000});
  CHECK(tanh(x).values() == std::vector<double>{-1, 1});
}

TEST_CASE("activations: arrays in place") {
  std::vector<float> x = {-1, 0.5f, 2}, dy = {1, 1, 1};
  activate_backward(Activation::gelu, x.data(), dy.data(), dy.data(), 3);
  CHECK(dy[2] == doctest::Approx(1.0852319).epsilon(1e-6));
  activate(Activation::relu, x.data(), x.data(), 3);
  CHECK(x == std::vector<float>{0, 0.5f, 2});
  activate(Activation::none, x.data(), dy.data(), 3);
  CHECK(dy == x);
}

TEST_CASE("activations: errors and names") {
  CHECK(name(Activation::none) == "none");
  CHECK(name(Activation::gelu_tanh) == "gelu_tanh");
  CHECK(name(Activation::tanh) == "tanh");
  CHECK_THROWS_WITH_AS(gelu(Tensor::from(std::vector<int64_t>{1, 2}, {2})),
                       "gelu: i64 [2] is not floating; convert it with to(DType::f32)", Error);
}
