#include <doctest/doctest.h>

#include <cstdlib>
#include <numeric>
#include <set>

#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"
#include "engine/core/error.h"
#include "engine/ops/activations.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/linear.h"
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
