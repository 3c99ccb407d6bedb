#include "engine/ops/patches.h"

#include <doctest/doctest.h>

#include "engine/check/gradient_check.h"
#include "engine/check/op_case.h"
#include "engine/core/error.h"

using namespace tessera;

using Values = std::vector<double>;

TEST_CASE("patches: row by row, each as (c, p1, p2)") {
  Tensor image = Tensor::empty({1, 2, 2, 4});
  for (int64_t i = 0; i < 16; ++i) image.data<float>()[i] = static_cast<float>(i);
  const Tensor y = patches(image, 2);
  CHECK(y.shape() == Shape{1, 2, 8});
  CHECK(y.values() == Values{0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15});
}

TEST_CASE("patches: copies look left, right, up, down, then along the diagonals") {
  const Tensor image = Tensor::from({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 3, 3});
  const Tensor y = shifted_copies(image, Directions::all, 1);
  CHECK(y.shape() == Shape{1, 9, 3, 3});
  const Values all = y.values();
  const auto copy = [&](int d) { return Values(all.begin() + 9 * d, all.begin() + 9 * d + 9); };
  CHECK(copy(0) == image.values());
  CHECK(copy(1) == Values{0, 1, 2, 0, 4, 5, 0, 7, 8});
  CHECK(copy(2) == Values{2, 3, 0, 5, 6, 0, 8, 9, 0});
  CHECK(copy(3) == Values{0, 0, 0, 1, 2, 3, 4, 5, 6});
  CHECK(copy(4) == Values{4, 5, 6, 7, 8, 9, 0, 0, 0});
  CHECK(copy(5) == Values{0, 0, 0, 0, 1, 2, 0, 4, 5});
  CHECK(copy(6) == Values{0, 0, 0, 2, 3, 0, 5, 6, 0});
  CHECK(copy(7) == Values{0, 4, 5, 0, 7, 8, 0, 0, 0});
  CHECK(copy(8) == Values{5, 6, 0, 8, 9, 0, 0, 0, 0});
  const Values diagonal = shifted_copies(image, Directions::diagonal, 1).values();
  CHECK(diagonal == [&] {
    Values expected = copy(0);
    expected.insert(expected.end(), all.begin() + 45, all.end());
    return expected;
  }());
  CHECK(shifted_copies(image, Directions::cardinal, 0).values() == [&] {
    Values expected;
    for (int d = 0; d < 5; ++d) expected.insert(expected.end(), {1, 2, 3, 4, 5, 6, 7, 8, 9});
    return expected;
  }());
}

TEST_CASE("patches: errors") {
  const Tensor image = Tensor::zeros({1, 3, 32, 30});
  CHECK_THROWS_WITH_AS(patches(image, 4),
                       "patches: the image [1, 3, 32, 30] cannot be cut into patches of 4 x 4 "
                       "pixels; height and width are to be multiples",
                       Error);
  CHECK_THROWS_WITH_AS(patches(image, 0), doctest::Contains("cannot be cut into patches of 0 x 0 pixels"),
                       Error);
  CHECK_THROWS_WITH_AS(patches(Tensor::zeros({3, 4, 4}), 2),
                       "patches: [3, 4, 4] is no batch of images [B, C, H, W]", Error);
  CHECK_THROWS_WITH_AS(shifted_copies(Tensor::zeros({3}), Directions::all, 2),
                       "shifted_copies: [3] is no batch of images [B, C, H, W]", Error);
  CHECK_THROWS_WITH_AS(shifted_patches(image, 4, Directions::all, 2),
                       "shifted_patches: the image [1, 3, 32, 30] cannot be cut into patches of 4 x 4 "
                       "pixels; height and width are to be multiples",
                       Error);
  CHECK_THROWS_WITH_AS(shifted_patches(image, 2, Directions::all, -1),
                       "shifted_patches: a shift of -1 pixels is negative", Error);
  CHECK_THROWS_WITH_AS(shifted_copies(image, Directions::all, -1),
                       "shifted_copies: a shift of -1 pixels is negative", Error);
}
