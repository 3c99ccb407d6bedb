#include "engine/optim/statistics.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/cuda.h"
#include "tests/error_of.h"

using namespace tessera;

namespace {

// A forward pass moves one of each pair from 1 to 2; what the model's own are then.
void expect_settled(Device device) {
  const auto number = [&](double x, DType dtype = DType::f32) {
    return Tensor::full({1}, x, dtype).to(device);
  };
  for (const bool other_moves : {false, true})
    for (const bool taken : {true, false}) {
      CAPTURE(other_moves);
      CAPTURE(taken);
      const Tensor own = number(1), other = number(-7), long_own = Tensor::full({40000}, 1).to(device),
                   long_other = long_own.clone();
      const Statistics statistics({{own, other, other_moves}, {long_own, long_other, other_moves}});
      statistics.begin_step();
      CHECK(other.item() == 1);
      (other_moves ? other : own).fill(2);
      (other_moves ? long_other : long_own).fill(2);
      statistics.end_step(number(taken ? 3 : std::nan(""), DType::f64));
      CHECK(own.item() == (taken ? 2 : 1));
      CHECK(long_own.to(Device::cpu).values() == std::vector<double>(40000, taken ? 2 : 1));
    }
}

}  // namespace

TEST_CASE("statistics move with a step that is taken and stay with one that is left out") {
  expect_settled(Device::cpu);
}

TEST_CASE("cuda: statistics move with a step that is taken and stay with one that is left out") {
  if (cuda_here()) expect_settled(Device::cuda);
}

TEST_CASE("statistics: what is no pair is refused") {
  const auto error = [](const Tensor& own, const Tensor& other) {
    return error_of([&] { Statistics({{own, other}}); });
  };
  const Tensor x = Tensor::zeros({2});
  CHECK(error(x, Tensor::zeros({3})) ==
        "statistics: f32 [2] on cpu and f32 [3] on cpu are no pair; f32 or f64 of one shape are wanted");
  CHECK(error(Tensor::zeros({2}, DType::bf16), Tensor::zeros({2}, DType::bf16)).starts_with("statistics: "));
  CHECK(error(x, x).empty());
  const Statistics none(std::vector<Statistics::Pair>{});
  none.begin_step();
  none.end_step(Tensor::zeros({1}, DType::f64));
}
