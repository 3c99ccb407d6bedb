#include "engine/ops/take.h"

#include <doctest/doctest.h>

#include "engine/autograd/tape.h"
#include "engine/check/gradient_check.h"
#include "engine/core/error.h"

using namespace tessera;

TEST_CASE("the gradient of an entry that is taken often is rounded once") {
  constexpr int64_t often = 1000;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Tensor x = Tensor::zeros({2, 3}, dtype).require_grad();
    Tape tape;
    const Tensor y = take(x, 0, Tensor::from(std::vector<int64_t>(often, 1), {often}));
    tape.backward(y, Tensor::full(y.shape(), 1, dtype));
    CHECK(x.grad().values() == std::vector<double>{0, 0, 0, often, often, often});
  }
}

TEST_CASE("take puts entries in another order and refuses those that are not there") {
  const Tensor x = Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto index = [](std::vector<int64_t> of) {
    return Tensor::from(of, {static_cast<int64_t>(of.size())});
  };
  CHECK(take(x, 1, index({2, 0})).values() == std::vector<double>{3, 1, 6, 4});
  CHECK(take(x, 0, index({1, 1})).values() == std::vector<double>{4, 5, 6, 4, 5, 6});
  CHECK(flip(x, 1).values() == std::vector<double>{3, 2, 1, 6, 5, 4});
  CHECK(flip(x, 0).values() == std::vector<double>{4, 5, 6, 1, 2, 3});
  CHECK_THROWS_WITH_AS(take(x, 1, index({0, 3})), "take: index 3 of axis 1 of [2, 3], which has 0 to 2",
                       Error);
  CHECK_THROWS_WITH_AS(take(x, 1, index({-1})), doctest::Contains("take: index -1 of axis 1"), Error);
  CHECK_THROWS_WITH_AS(flip(x, 2), "flip: axis 2 of [2, 3], which has 2", Error);
  CHECK_THROWS_WITH_AS(take(x, 2, index({0})), "take: axis 2 of [2, 3], which has 2", Error);
  CHECK_THROWS_WITH_AS(take(x, 1, Tensor::zeros({1})),
                       doctest::Contains("take: index f32 [1], a list of i64 is wanted"), Error);
}
