#include "engine/ops/attention/mask.h"

#include <doctest/doctest.h>

#include <limits>

#include "engine/autograd/tape.h"
#include "engine/core/error.h"

using namespace tessera;

TEST_CASE("mask_diagonal sets the diagonal and stops its gradient") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Tensor x = Tensor::from({1, 2, 3, 4}, {1, 2, 2}).require_grad();
  Tape tape;
  const Tensor y = mask_diagonal(x);
  CHECK(y.values() == std::vector<double>{-infinity, 2, 3, -infinity});
  tape.backward(y, Tensor::from({5, 6, 7, 8}, {1, 2, 2}));
  CHECK(x.grad().values() == std::vector<double>{0, 6, 7, 0});
  CHECK_THROWS_WITH_AS(mask_diagonal(Tensor::zeros({2, 3})), "mask_diagonal: input [2, 3] is not [..., N, N]",
                       Error);
}
