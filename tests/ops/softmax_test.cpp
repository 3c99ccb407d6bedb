#include "engine/ops/softmax.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"
#include "engine/core/error.h"

using namespace tessera;

TEST_CASE("softmax: values") {
  const Tensor x = Tensor::from({0, std::log(3.0), 1000, 1000}, {2, 2}, DType::f64);
  CHECK(relative_error(softmax(x), Tensor::from({0.25, 0.75, 0.5, 0.5}, {2, 2}, DType::f64)) < 1e-15);
  const Tensor logs =
      Tensor::from({std::log(0.25), std::log(0.75), std::log(0.5), std::log(0.5)}, {2, 2}, DType::f64);
  CHECK(relative_error(log_softmax(x), logs) < 1e-14);
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(softmax(Tensor::from({-infinity, -2, -2}, {3})).values() == std::vector<double>{0, 0.5, 0.5});
  CHECK(log_softmax(Tensor::from({-infinity, -2}, {2})).values() == std::vector<double>{-infinity, 0});
}

TEST_CASE("softmax: errors") {
  CHECK_THROWS_WITH_AS(softmax(Tensor::zeros({})), "softmax: a scalar has no row", Error);
  CHECK_THROWS_WITH_AS(log_softmax(Tensor::zeros({2}, DType::i64)),
                       "log_softmax: i64 [2] is not floating; convert it with to(DType::f32)", Error);
}
