#include "engine/core/tensor.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "engine/core/error.h"

using namespace tessera;
using Values = std::vector<double>;

TEST_CASE("tensor: made from values, in every type") {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i64, DType::u8}) {
    const Tensor x = Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3}, dtype);
    CHECK(x.dtype() == dtype);
    CHECK(x.values() == Values{1, 2, 3, 4, 5, 6});
    CHECK(x.bytes() == 6 * size_of(dtype));
    CHECK(Tensor::zeros({2}, dtype).values() == Values{0, 0});
    CHECK(Tensor::full({2}, 7, dtype).values() == Values{7, 7});
  }
  const std::vector<int64_t> labels{3, int64_t{1} << 60};
  CHECK(Tensor::from(labels, {2}).integers() == labels);
  CHECK(Tensor::full({}, 2.5).item() == 2.5);
  CHECK(Tensor::empty({3, 0}).values().empty());
}

TEST_CASE("tensor: a reshape and a slice of rows are views") {
  const Tensor x = Tensor::from({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor wide = x.reshape({2, -1}), rows = x.rows(1, 2);
  CHECK(wide.shape() == Shape{2, 3});
  CHECK(rows.values() == Values{3, 4, 5, 6});
  rows.fill(0);
  CHECK(x.values() == Values{1, 2, 0, 0, 0, 0});
  CHECK(wide.values() == x.values());
  CHECK(rows.rows(1, 0).elements() == 0);
  CHECK(rows.rows(1, 1).raw() == static_cast<std::byte*>(x.raw()) + 4 * sizeof(float));
  CHECK(Tensor::empty({0, 5}).reshape({-1, 5}).shape() == Shape{0, 5});
}

TEST_CASE("tensor: clone, copy_from, conversion") {
  const Tensor x = Tensor::from({1.5, -2.25}, {2}), y = x.clone();
  y.fill(9);
  CHECK(x.values() == Values{1.5, -2.25});
  y.copy_from(x.reshape({2, 1}));
  CHECK(y.values() == x.values());
  CHECK(x.to(DType::f64).values() == x.values());
  CHECK(x.to(DType::f64).to(DType::i64).integers() == std::vector<int64_t>{1, -2});
  CHECK(x.to(DType::f32).raw() == x.raw());
  CHECK(x.to(Device::cpu).raw() == x.raw());
}

TEST_CASE("tensor: handles share, and know it") {
  const Tensor x = Tensor::empty({4});
  CHECK(!x.shared());
  {
    const Tensor view = x.reshape({2, 2});
    CHECK(x.shared());
  }
  CHECK(!x.shared());
}

TEST_CASE("tensor: leaves") {
  Tensor x = Tensor::from({1, 2}, {2});
  CHECK(!x.is_leaf());
  x.require_grad();
  CHECK(x.is_leaf());
  CHECK(x.reshape({1, 2}).is_leaf());
  CHECK(!x.grad().defined());
  CHECK(!x.detach().is_leaf());
  CHECK(!x.clone().is_leaf());
  CHECK(!x.rows(0, 1).is_leaf());
}

TEST_CASE("tensor: errors") {
  const Tensor x = Tensor::empty({2, 3});
  CHECK_THROWS_WITH_AS(x.data<double>(), "tensor: [2, 3] holds f32, read as f64", Error);
  CHECK_THROWS_WITH_AS(x.item(), "tensor: item() of [2, 3], which has 6 elements", Error);
  CHECK_THROWS_WITH_AS(x.integers(), "tensor: integers() of f32 values", Error);
  CHECK_THROWS_WITH_AS(x.reshape({4, 2}), "reshape: [2, 3] to [4, 2]: 6 elements against 8", Error);
  CHECK_THROWS_WITH_AS(x.reshape({4, -1}), "reshape: [2, 3] to [4, 1]: 6 elements against 4", Error);
  CHECK_THROWS_WITH_AS(x.reshape({-1, -1}), "reshape: only one size may be -1", Error);
  CHECK_THROWS_WITH_AS(x.rows(1, 2), "rows: 2 from row 1 of [2, 3]", Error);
  CHECK_THROWS_WITH_AS(x.rows(-1, 1), "rows: 1 from row -1 of [2, 3]", Error);
  CHECK_THROWS_WITH_AS(x.rows(std::numeric_limits<int64_t>::max() - 2, 3), doctest::Contains("of [2, 3]"),
                       Error);
  CHECK_THROWS_WITH_AS(Tensor::empty({}).rows(0, 1), "rows: 1 from row 0 of []", Error);
  CHECK_THROWS_WITH_AS(Tensor::from({1, 2}, {3}), "tensor: 2 values for the shape [3], which has 3", Error);
  CHECK_THROWS_WITH_AS(x.copy_from(Tensor::empty({6}, DType::f64)), "tensor: copy of f64 [6] into f32 [2, 3]",
                       Error);
  CHECK_THROWS_WITH_AS(x.copy_from(Tensor::empty({5})), "tensor: copy of f32 [5] into f32 [2, 3]", Error);
  CHECK_THROWS_WITH_AS(Tensor().values(), "tensor: values of an undefined tensor", Error);
  CHECK_THROWS_WITH_AS(Tensor().raw(), "tensor: data of an undefined tensor", Error);
  CHECK_THROWS_WITH_AS(Tensor::empty({2}, DType::i64).require_grad(),
                       "tensor: only floating values have a gradient, this one holds i64", Error);
}
