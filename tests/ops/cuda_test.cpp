#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <set>

#include "engine/autograd/tape.h"
#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"
#include "engine/core/error.h"
#include "engine/ops/activations.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/linear.h"
#include "engine/ops/norm.h"
#include "engine/ops/reduce.h"
#include "tests/cuda.h"

using namespace tessera;

// The environment variable TESSERA_CASES restricts the checks to the ops that it names, each followed by
// a comma.
TEST_CASE("cuda: every op against the CPU, f64, f32 and bf16") {
  if (!cuda_here()) return;
  const char* chosen = std::getenv("TESSERA_CASES");
  int checked = 0;
  for (const OpCase& c : all_cases()) {
    if (chosen && *chosen && std::string(chosen).find(c.op + ",") == std::string::npos) continue;
    CAPTURE(c.name());
    for (const std::string& failure : check_case_on(c, Device::cuda)) FAIL_CHECK(failure);
    ++checked;
  }
  CHECK(checked > 0);
}

TEST_CASE("cuda: a bias that begins between two multiples of 16 bytes") {
  if (!cuda_here()) return;
  const Tensor x = Tensor::from({1, 2, 3, 4}, {2, 2}), weight = Tensor::from({1, 0, 0, 1, 1, 1}, {3, 2});
  const Tensor biases = Tensor::from({9, 9, 9, 10, 20, 30}, {2, 3});
  const auto on = [](const Tensor& t) { return t.to(Device::cuda); };
  const Tensor y = linear(on(x), on(weight), on(biases).rows(1, 1).reshape({3}));
  CHECK(y.to(Device::cpu).values() == std::vector<double>{11, 22, 33, 13, 24, 37});
}

TEST_CASE("cuda: a tensor that begins between two multiples of 16 bytes") {
  if (!cuda_here()) return;
  std::vector<double> numbers(303);
  std::iota(numbers.begin(), numbers.end(), -150);
  const Tensor x = Tensor::from(numbers, {3, 101}), row = x.rows(1, 1);
  const Tensor on_device = x.to(Device::cuda).rows(1, 1);
  CHECK(relu(on_device).to(Device::cpu).values() == relu(row).values());
  CHECK(scale(on_device, 2).to(Device::cpu).values() == scale(row, 2).values());
}

// A weight's gradient over many rows is cut into parts, the last of them shorter.
TEST_CASE("cuda: the gradients of a linear layer over 1,100 and 2,048 rows, and of an intermediate weight") {
  if (!cuda_here()) return;
  for (const int64_t rows : {1100, 2048}) {
    CAPTURE(rows);
    const auto gradients = [&](Device device) {
      const auto wave = [&](Shape shape, double step) {
        Tensor made = Tensor::empty(shape, DType::f64);
        for (int64_t i = 0; i < made.elements(); ++i) made.data<double>()[i] = std::sin(step * double(i));
        return made.to(device).require_grad();
      };
      const Tensor x = wave({rows, 5}, 0.1), weight = wave({7, 5}, 0.7), bias = wave({7}, 0.3);
      const Tensor gain = wave({7}, 0.9), shift = wave({7}, 1.1);
      Tape tape;
      // The norm's gain is a value of the tape, whose gradient an earlier step reads, and comes twice.
      const Tensor scaled = scale(gain, 2);
      const Tensor y = layer_norm(linear(x, weight, bias), scaled, shift, 1e-5);
      tape.backward(sum(multiply(y, layer_norm(y, scaled, shift, 1e-5))));
      std::vector<std::vector<double>> all;
      for (const Tensor& t : {x, weight, bias, gain, shift}) all.push_back(t.grad().to(Device::cpu).values());
      return all;
    };
    const auto expected = gradients(Device::cpu), got = gradients(Device::cuda);
    for (size_t t = 0; t < expected.size(); ++t)
      for (size_t i = 0; i < expected[t].size(); ++i) {
        CAPTURE(t);
        REQUIRE(got[t][i] == doctest::Approx(expected[t][i]).epsilon(1e-9));
      }
  }
}
