#include "engine/ops/noise.h"

#include <doctest/doctest.h>

#include <cmath>

#include "engine/check/gradient_check.h"
#include "engine/core/parallel.h"
#include "engine/core/random.h"
#include "tests/cuda.h"

using namespace tessera;

TEST_CASE("noise is standard normal, and the same whatever the thread count") {
  const Tensor noise = normal_noise({100000}, 42, DType::f64);
  double sum = 0, squares = 0;
  for (const double z : noise.values()) {
    sum += z;
    squares += z * z;
  }
  CHECK(std::abs(sum / 1e5) < 0.015);
  CHECK(squares / 1e5 == doctest::Approx(1).epsilon(0.02));
  const int before = threads();
  set_threads(1);
  CHECK(normal_noise({100000}, 42, DType::f64).values() == noise.values());
  set_threads(before);
  CHECK(normal_noise({8}, 43).values() != normal_noise({8}, 42).values());
}

TEST_CASE("noise is that of the random numbers' streams, in any type") {
  const std::vector<double> noise = normal_noise({5000}, 42, DType::f64).values();
  Random first(42, 0), second(42, 1);
  for (size_t i = 0; i < 4096; ++i) CHECK(noise[i] == first.normal());
  for (size_t i = 4096; i < noise.size(); ++i) CHECK(noise[i] == second.normal());
  CHECK(normal_noise({5000}, 42).values() == normal_noise({5000}, 42, DType::f64).to(DType::f32).values());
}

TEST_CASE("cuda: noise is the CPU's") {
  if (!cuda_here()) return;
  const Tensor here = normal_noise({5000}, 42, DType::f64);
  CHECK(relative_error(normal_noise({5000}, 42, DType::f64, Device::cuda), here) <= 1e-14);
}
