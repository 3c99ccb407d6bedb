#include "engine/ops/residual_norm.h"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/autograd/tape.h"
#include "engine/ops/dropout.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/norm.h"
#include "engine/ops/reduce.h"
#include "tests/cuda.h"

using namespace tessera;

namespace {

Tensor wave(const Shape& shape, double step, DType type, Device device) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < shape.elements(); ++i) numbers.push_back(std::sin(step * static_cast<double>(i)));
  return Tensor::from(numbers, shape).to(type).to(device).require_grad();
}

struct Asked {
  int64_t width;
  double p;
  DType type;
  bool uses_norm;
};

// The sum, the norm, and the gradients of x, the branch, the weight and the bias.
std::vector<std::vector<double>> results(const Asked& asked, Device device, bool fused) {
  const Shape shape{5, 3, asked.width};
  const auto make = [&](const Shape& of, double step) { return wave(of, step, asked.type, device); };
  const Tensor x = make(shape, 0.37), branch = make(shape, 0.71), weight = make({asked.width}, 0.2),
               bias = make({asked.width}, 0.3);
  Tape tape;
  const auto plain = [&] {
    const Tensor sum = drop_path(x, branch, {asked.p, 7});
    return NormedSum{sum, layer_norm(sum, weight, bias, 1e-5)};
  };
  const auto [sum_of_both, normed] =
      fused ? residual_norm(x, branch, {asked.p, 7}, weight, bias, 1e-5, "norm") : plain();
  const Tensor used = asked.uses_norm ? add(multiply(normed, normed), sum_of_both) : sum_of_both;
  tape.backward(sum(multiply(used, used)));
  std::vector<std::vector<double>> all;
  for (const Tensor& t : {sum_of_both, normed}) all.push_back(t.detach().to(Device::cpu).values());
  for (const Tensor& t : {x, branch, weight, bias})
    if (t.grad().defined()) all.push_back(t.grad().to(Device::cpu).values());
  return all;
}

void check_same_bits(Device device) {
  for (const int64_t width : {24, 33, 192, 1100})
    for (const double p : {0.0, 0.4})
      for (const DType type : {DType::f64, DType::f32, DType::bf16})
        for (const bool uses_norm : {true, false}) {
          CAPTURE(width);
          CAPTURE(p);
          CAPTURE(type);
          CAPTURE(uses_norm);
          const Asked asked{width, p, type, uses_norm};
          const auto expected = results(asked, device, false);
          CHECK(expected.size() == (uses_norm ? 6 : 4));
          CHECK(results(asked, device, true) == expected);
        }
}

}  // namespace

TEST_CASE("residual_norm has the bits of drop_path and layer_norm") { check_same_bits(Device::cpu); }

TEST_CASE("cuda: residual_norm has the bits of drop_path and layer_norm") {
  if (cuda_here()) check_same_bits(Device::cuda);
}

TEST_CASE("residual_norm refuses what the two ops refuse") {
  const auto make = [](const Shape& shape) { return wave(shape, 1, DType::f32, Device::cpu); };
  const Tensor x = make({2, 3}), weight = make({3}), bias = make({3});
  CHECK_THROWS_WITH(residual_norm(x, make({2, 4}), {}, weight, bias, 1e-5, "norm"),
                    doctest::Contains("one type and shape are wanted"));
  CHECK_THROWS_WITH(residual_norm(x, x, {1.5, 0}, weight, bias, 1e-5, "norm"),
                    doctest::Contains("drop_path"));
  CHECK_THROWS_WITH(residual_norm(x, x, {}, make({4}), bias, 1e-5, "norm"), doctest::Contains("layer_norm"));
}
