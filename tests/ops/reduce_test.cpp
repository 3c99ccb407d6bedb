#include "engine/ops/reduce.h"

#include <doctest/doctest.h>
#include <tbb/task_arena.h>

#include <cmath>

#include "engine/autograd/tape.h"
#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"
#include "engine/core/error.h"

using namespace tessera;

TEST_CASE("reduce: values") {
  using Values = std::vector<double>;
  const Tensor x = Tensor::from({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2});
  CHECK(sum(x).item() == 36);
  CHECK(sum(x).shape() == Shape{});
  CHECK(mean(x).item() == 4.5);
  CHECK(sum(x, {0}).values() == Values{6, 8, 10, 12});
  CHECK(sum(x, {1}).values() == Values{4, 6, 12, 14});
  CHECK(sum(x, {-1}).values() == Values{3, 7, 11, 15});
  CHECK(mean(x, {0, 2}).values() == Values{3.5, 5.5});
  CHECK(mean(x, {0, 2}, true).shape() == Shape{1, 2, 1});
  CHECK(sum(x, {0, 2}).shape() == Shape{2});
  CHECK(sum(x, std::vector<int>{}).values() == x.values());
  CHECK(sum(Tensor::empty({0, 3}), {0}).values() == Values{0, 0, 0});
  CHECK(sum(Tensor::full({1000, 1000}, 1)).item() == 1e6);
}

TEST_CASE("reduce: several chunks, the same bits on one thread and on many") {
  for (const Shape& shape : {Shape{20000, 3}, Shape{3, 20000}, Shape{5, 30000, 1}, Shape{40, 5000}}) {
    const Tensor x = random_tensor(shape, 1), narrow = x.to(DType::f32);
    for (const int axis : {0, 1}) {
      const Tensor y = sum(narrow, {axis});
      CHECK(relative_error(y, sum(x, {axis})) < 1e-5);  // float sums of up to 30000 terms
      const Tensor alone = tbb::task_arena(1).execute([&] { return sum(narrow, {axis}); });
      CHECK(alone.values() == y.values());
    }
  }
  CHECK(sum(Tensor::full({7, 100001}, 2)).item() == 1400014);
  const Tensor counts = mean(Tensor::full({40000, 2}, 3), {0});
  CHECK(counts.values() == std::vector<double>{3, 3});
}

TEST_CASE("max: values, and the gradient of equal ones") {
  using Values = std::vector<double>;
  Tensor x = Tensor::from({1, 5, 3, 5, 2, 3}, {3, 2}).require_grad();
  CHECK(max(x, 1).values() == Values{5, 5, 3});
  CHECK(max(x, 0, true).shape() == Shape{1, 2});
  Tape tape;
  const Tensor y = max(x, 0);
  tape.backward(y, Tensor::from({10, 20}, {2}));
  CHECK(y.values() == Values{3, 5});
  CHECK(x.grad().values() == Values{0, 20, 10, 0, 0, 0});
  CHECK(std::isnan(max(Tensor::from({1, NAN, 3}, {3}), 0).item()));
  CHECK(max(Tensor::full({70000, 3}, -1), 0).values() == Values{-1, -1, -1});
}

TEST_CASE("reduce: errors") {
  const Tensor x = Tensor::zeros({2, 3});
  CHECK_THROWS_WITH_AS(sum(x, {2}), "sum: axis 2 of [2, 3], which has 2", Error);
  CHECK_THROWS_WITH_AS(mean(x, {-3}), "mean: axis -3 of [2, 3], which has 2", Error);
  CHECK_THROWS_WITH_AS(sum(x, {1, -1}), "sum: axis -1 of [2, 3] is named twice", Error);
  CHECK_THROWS_WITH_AS(mean(Tensor::zeros({0, 2})), "mean: [0, 2] has no elements", Error);
  CHECK_THROWS_WITH_AS(mean(Tensor::from(std::vector<int64_t>{1, 2}, {2})),
                       "mean: i64 [2] is not floating; convert it with to(DType::f32)", Error);
  CHECK_THROWS_WITH_AS(max(x, 2), "max: axis 2 of [2, 3], which has 2", Error);
  CHECK_THROWS_WITH_AS(max(Tensor::zeros({0, 2}), 0), "max: axis 0 of [0, 2] has no entry", Error);
}
