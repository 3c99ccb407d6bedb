#include "engine/ops/shape.h"

#include <doctest/doctest.h>

#include <limits>

#include "engine/autograd/tape.h"
#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"
#include "engine/core/error.h"

using namespace tessera;

using Values = std::vector<double>;

TEST_CASE("shape: values") {
  const Tensor x = Tensor::from({1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(broadcast_to(Tensor::from({1, 2}, {2, 1}), {2, 3}).values() == Values{1, 1, 1, 2, 2, 2});
  CHECK(broadcast_to(Tensor::from({7}, {}), {2}).values() == Values{7, 7});
  CHECK(transpose(x).values() == Values{1, 4, 2, 5, 3, 6});
  CHECK(transpose(x).shape() == Shape{3, 2});
  CHECK(permute(x.reshape({1, 2, 3}), {2, 0, 1}).shape() == Shape{3, 1, 2});
  CHECK(concat({x, x}, 0).shape() == Shape{4, 3});
  CHECK(concat({x, Tensor::from({8, 9}, {2, 1})}, 1).values() == Values{1, 2, 3, 8, 4, 5, 6, 9});
  CHECK(slice(x, 1, 1, 2).values() == Values{2, 3, 5, 6});
  CHECK(slice(x, 0, 2, 0).shape() == Shape{0, 3});
  const Tensor index = Tensor::from(std::vector<int64_t>{1, 1, 0}, {3, 1});
  CHECK(gather(x, index).values() == Values{4, 5, 6, 4, 5, 6, 1, 2, 3});
  CHECK(gather(x, index).shape() == Shape{3, 1, 3});
}

TEST_CASE("shape: a permutation of many elements") {
  const Tensor x = random_tensor({3, 70, 45, 2}, 1);
  for (const std::vector<int>& order :
       {std::vector<int>{0, 2, 1, 3}, {3, 0, 2, 1}, {2, 3, 1, 0}, {1, 0, 3, 2}}) {
    const Tensor y = permute(x, order);
    std::vector<int> back(4);
    for (int i = 0; i < 4; ++i) back[static_cast<size_t>(order[static_cast<size_t>(i)])] = i;
    CHECK(permute(y, back).values() == x.values());
    int64_t step[4];
    for (size_t i = 0; i < 4; ++i) step[i] = x.shape().elements(order[i] + 1, 4);
    bool same = true;
    for (int64_t i = 0; i < y.elements(); ++i) {
      int64_t rest = i, at = 0;
      for (int axis = 3; axis >= 0; --axis) {
        at += rest % y.dim(axis) * step[axis];
        rest /= y.dim(axis);
      }
      same = same && y.data<double>()[i] == x.data<double>()[at];
    }
    CHECK(same);
  }
}

TEST_CASE("shape: a permuted entry is the slice without its axis, permuted") {
  const Tensor x = random_tensor({3, 7, 5, 2}, 1);
  for (const int axis : {0, 1, 3, -2})
    for (const std::vector<int>& order : {std::vector<int>{0, 1, 2}, {2, 0, 1}, {1, 2, 0}}) {
      CAPTURE(axis);
      std::vector<int64_t> others;
      for (int a = 0; a < 4; ++a)
        if (a != x.shape().axis(axis)) others.push_back(x.dim(a));
      const Tensor entry = slice(x, axis, 1, 1).reshape(Shape(others)), y = permuted_entry(x, axis, 1, order);
      CHECK(y.shape() == permute(entry, order).shape());
      CHECK(y.values() == permute(entry, order).values());
    }
}

TEST_CASE("shape: integers are refused in the op's own name") {
  const Tensor labels = Tensor::from(std::vector<int64_t>{1, 2}, {2});
  const std::string rest = ": i64 [2] is not floating; convert it with to(DType::f32)";
  CHECK_THROWS_WITH_AS(broadcast_to(labels, {3, 2}), ("broadcast_to" + rest).c_str(), Error);
  CHECK_THROWS_WITH_AS(permute(labels, {0}), ("permute" + rest).c_str(), Error);
  CHECK_THROWS_WITH_AS(concat({labels, labels}, 0), ("concat" + rest).c_str(), Error);
  CHECK_THROWS_WITH_AS(slice(labels, 0, 0, 1), ("slice" + rest).c_str(), Error);
}

TEST_CASE("shape: errors") {
  const Tensor x = Tensor::zeros({2, 3});
  CHECK_THROWS_WITH_AS(permuted_entry(x, 1, 3, {0}),
                       "permuted_entry: entry 3 of axis 1 of [2, 3], which has 3", Error);
  CHECK_THROWS_WITH_AS(permuted_entry(x, 1, 0, {0, 1}),
                       "permuted_entry: the order names each of the 1 axes of [2] once", Error);
  CHECK_THROWS_WITH_AS(broadcast_to(x, {2, 4}),
                       "broadcast_to: [2, 3] and [2, 4] do not broadcast: 3 against 4", Error);
  CHECK_THROWS_WITH_AS(broadcast_to(x, {1, 3}), "broadcast_to: [2, 3] does not stretch to [1, 3]", Error);
  CHECK_THROWS_WITH_AS(permute(x, {0, 0}), "permute: the order names each of the 2 axes of [2, 3] once",
                       Error);
  CHECK_THROWS_WITH_AS(permute(x, {0}), "permute: the order names each of the 2 axes of [2, 3] once", Error);
  CHECK_THROWS_WITH_AS(transpose(Tensor::zeros({3})), "transpose: [3] has no two axes to exchange", Error);
  CHECK_THROWS_WITH_AS(concat({}, 0), "concat: no tensors", Error);
  CHECK_THROWS_WITH_AS(
      concat({x, Tensor::zeros({2, 4})}, 0),
      "concat: f32 [2, 4] after f32 [2, 3] along axis 0; type and all other axes are to agree", Error);
  CHECK_THROWS_WITH_AS(slice(x, 1, 2, 2), "slice: 2 entries from entry 2 of axis 1 of [2, 3], which has 3",
                       Error);
  CHECK_THROWS_WITH_AS(slice(x, 2, 0, 1), "slice: axis 2 of [2, 3], which has 2", Error);
  CHECK_THROWS_WITH_AS(concat({x, x}, -3), "concat: axis -3 of [2, 3], which has 2", Error);
  CHECK_THROWS_WITH_AS(permute(x, {0, 2}), "permute: axis 2 of [2, 3], which has 2", Error);
  CHECK_THROWS_WITH_AS(permuted_entry(x, 2, 0, {0}), "permuted_entry: axis 2 of [2, 3], which has 2", Error);
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  CHECK_THROWS_WITH_AS(slice(x, 1, most, 2), doctest::Contains("which has 3"), Error);
  CHECK_THROWS_WITH_AS(slice(x, 1, 1, most), doctest::Contains("which has 3"), Error);
  CHECK_THROWS_WITH_AS(gather(x, Tensor::from(std::vector<int64_t>{0, 2}, {2})),
                       "gather: index 2 at position 1, the table [2, 3] has rows 0 to 1", Error);
  CHECK_THROWS_WITH_AS(gather(x, Tensor::from(std::vector<int64_t>{-1}, {1})),
                       "gather: index -1 at position 0, the table [2, 3] has rows 0 to 1", Error);
  CHECK_THROWS_WITH_AS(gather(x, x), "gather: index f32 [2, 3]; i64 is wanted", Error);
  const Tape tape;
  CHECK_THROWS_WITH_AS(permuted_entry(x, 1, 0, {0}),
                       "permuted_entry: a tape records, which slice and permute are for", Error);
}
