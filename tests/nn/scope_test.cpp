#include "engine/nn/scope.h"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/core/error.h"
#include "engine/nn/layer_norm.h"
#include "engine/nn/linear.h"

using namespace tessera;

TEST_CASE("a scope names each parameter by where it is made") {
  Parameters parameters;
  const Scope scope(parameters, 1);
  const Linear fc(scope / "blocks" / 3 / "fc", 4, 2);
  const LayerNorm norm(scope / "norm", 4);
  std::vector<std::string> names;
  for (const Parameter& p : parameters) names.push_back(p.name);
  CHECK(names ==
        std::vector<std::string>{"blocks.3.fc.weight", "blocks.3.fc.bias", "norm.weight", "norm.bias"});
  CHECK(parameters.trainable_count() == 2 * 4 + 2 + 4 + 4);
  CHECK(fc.path == "blocks.3.fc");
  CHECK(parameters.find("norm.bias")->values() == std::vector<double>(4, 0.0));
  CHECK(parameters.find("norm.bia") == nullptr);
}

TEST_CASE("two parameters of one name are refused") {
  Parameters parameters;
  const Scope scope(parameters, 1);
  scope.parameter("w", {2}, constant(0));
  CHECK_THROWS_WITH_AS(scope.parameter("w", {2}, constant(0)), "parameters: two are called 'w'", Error);
}

TEST_CASE("a parameter's start depends on the seed and its name alone") {
  Parameters first, second, third;
  const Tensor a = Scope(first, 7).parameter("w", {5}, normal(1));
  const Scope other(second, 7);
  other.parameter("before", {9}, normal(1));
  const Tensor b = other.parameter("w", {5}, normal(1));
  const Tensor c = Scope(third, 8).parameter("w", {5}, normal(1));
  CHECK(a.values() == b.values());
  CHECK(a.values() != c.values());
}

TEST_CASE("a buffer is saved but not trained") {
  Parameters parameters;
  const Scope scope(parameters, 1);
  const Tensor buffer = scope.buffer("mean", {3}, constant(2));
  CHECK(!buffer.is_leaf());
  CHECK(parameters.trainable_count() == 0);
  CHECK(parameters.state().size() == 1);
}

namespace {

struct Statistics {
  double mean = 0, deviation = 0, largest = 0;
};

Statistics statistics(const Init& init, const Shape& shape) {
  const Tensor tensor = Tensor::empty(shape, DType::f64);
  Random random(3);
  init(tensor, random);
  Statistics s;
  const std::vector<double> values = tensor.values();
  for (const double v : values) s.mean += v / static_cast<double>(values.size());
  for (const double v : values) {
    s.deviation += (v - s.mean) * (v - s.mean) / static_cast<double>(values.size());
    s.largest = std::max(s.largest, std::abs(v));
  }
  s.deviation = std::sqrt(s.deviation);
  return s;
}

}  // namespace

TEST_CASE("initial values have the spread that they promise") {
  const Statistics narrow = statistics(truncated_normal(1.5), {100, 100});
  CHECK(narrow.largest <= 2.0);
  CHECK(narrow.deviation < 1.2);
  const Statistics wide = statistics(normal(0.5), {100, 100});
  CHECK(wide.deviation == doctest::Approx(0.5).epsilon(0.03));
  CHECK(std::abs(wide.mean) < 0.02);
  // A convolution's weight counts as a linear map: fan_in 6 * 5 * 5 = 150, fan_out 50.
  CHECK(statistics(xavier_normal(), {50, 6, 5, 5}).deviation == doctest::Approx(0.1).epsilon(0.03));
  const Statistics flat = statistics(uniform(0.3), {100, 100});
  CHECK(flat.largest <= 0.3);
  CHECK(flat.deviation == doctest::Approx(0.3 / std::sqrt(3.0)).epsilon(0.03));
}

TEST_CASE("loading says everything that is wrong at once, and then changes nothing") {
  Parameters parameters;
  const Scope scope(parameters, 1);
  const Linear fc(scope / "fc", 3, 2);
  const std::vector<double> before = fc.weight.values();
  const NamedTensors state{{"fc.weight", Tensor::zeros({3, 2})}, {"fc.scale", Tensor::zeros({1})}};
  CHECK_THROWS_WITH_AS(parameters.load(state, "a.safetensors"),
                       "a.safetensors: not this model's weights\n  missing:\n    fc.bias [2]\n"
                       "  not in the model:\n    fc.scale [1]\n"
                       "  of another shape:\n    fc.weight: [3, 2] in the file, the model has [2, 3]",
                       Error);
  CHECK(fc.weight.values() == before);
  const NamedTensors twice{{"fc.weight", Tensor::zeros({2, 3})},
                           {"fc.bias", Tensor::zeros({2})},
                           {"fc.weight", Tensor::full({2, 3}, 1)}};
  CHECK_THROWS_WITH_AS(parameters.load(twice, "a.safetensors"),
                       "a.safetensors: not this model's weights\n  given twice:\n    fc.weight", Error);
}

TEST_CASE("loading converts the type") {
  Parameters parameters;
  const Linear fc(Scope(parameters, 1) / "fc", 1, 2);
  const NamedTensors state{{"fc.bias", Tensor::from({5, 6}, {2}, DType::f64)},
                           {"fc.weight", Tensor::from({1.5, -2}, {2, 1}, DType::bf16)}};
  parameters.load(state, "test");
  CHECK(fc.weight.values() == std::vector<double>{1.5, -2});
  CHECK(fc.bias.values() == std::vector<double>{5, 6});
}
