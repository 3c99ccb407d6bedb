#include "engine/core/frozen_weights.h"

#include <doctest/doctest.h>

#include <functional>

#include "engine/autograd/tape.h"
#include "engine/check/gradient_check.h"
#include "engine/ops/conv.h"
#include "engine/ops/linear.h"

using namespace tessera;

namespace {

using Layer = std::function<Tensor(const Tensor& x, const Tensor& weight)>;

// The output and both gradients, one after the other.
std::vector<double> numbers_of(const Layer& layer, const Tensor& x, const Tensor& weight) {
  x.zero_grad();
  weight.zero_grad();
  std::vector<double> all = layer(x, weight).values();  // without a tape
  Tape tape;
  const Tensor y = layer(x, weight);
  tape.backward(y, y.detach());
  for (const Tensor& each : {y, x.grad(), weight.grad()})
    for (const double value : each.values()) all.push_back(value);
  return all;
}

void check_same(const Layer& layer, const Shape& x_shape, const Shape& weight_shape) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    CAPTURE(dtype);
    const Tensor x = random_tensor(x_shape, 1).to(dtype).require_grad(),
                 weight = random_tensor(weight_shape, 2).to(dtype).require_grad();
    const std::vector<double> wanted = numbers_of(layer, x, weight);
    const FrozenWeights frozen({{"weight", weight}});
    for (int call = 0; call < 2; ++call) CHECK(numbers_of(layer, x, weight) == wanted);
  }
}

}  // namespace

TEST_CASE("linear maps and convolutions by frozen weights have the same bits, at any call") {
  check_same([](const Tensor& x, const Tensor& w) { return linear(x, w, {}); }, {19, 23}, {37, 23});
  for (const ConvOptions& options :
       {ConvOptions{1, 1}, ConvOptions{2, 1}, ConvOptions{3, 0}}) {  // the last are patches
    CAPTURE(options.stride);
    check_same([&](const Tensor& x, const Tensor& w) { return conv2d(x, w, {}, options); }, {2, 9, 9, 5},
               {35, 5, 3, 3});
  }
}

TEST_CASE("two layers of one weight keep each its own") {
  const Tensor x = random_tensor({2, 9, 9, 5}, 1), weight = random_tensor({35, 5, 3, 3}, 2);
  const Tensor rows = random_tensor({4, 45}, 3);
  const auto all = [&] {
    std::vector<double> numbers = linear(rows, weight.reshape({35, 45}), {}).values();
    for (const ConvOptions& options : {ConvOptions{1, 1}, ConvOptions{3, 0}})
      for (const double value : conv2d(x, weight, {}, options).values()) numbers.push_back(value);
    for (const double value : linear(rows, weight.rows(0, 7).reshape({7, 45}), {}).values())
      numbers.push_back(value);
    return numbers;
  };
  const std::vector<double> wanted = all();
  const FrozenWeights frozen({{"weight", weight}});
  for (int call = 0; call < 2; ++call) CHECK(all() == wanted);
}
