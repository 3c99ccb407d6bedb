#include "engine/core/shape.h"

#include <doctest/doctest.h>

#include <vector>

#include "engine/core/error.h"

using namespace tessera;

TEST_CASE("shape: sizes, counted from either end") {
  const Shape shape{32, 65, 192};
  CHECK(shape.rank() == 3);
  CHECK(shape[0] == 32);
  CHECK(shape[-1] == 192);
  CHECK(shape.axis(-3) == 0);
  CHECK(shape.elements() == 32 * 65 * 192);
  CHECK(shape.elements(1, 3) == 65 * 192);
  CHECK(shape.elements(3, 3) == 1);
  CHECK(shape.text() == "[32, 65, 192]");
  CHECK(Shape{}.elements() == 1);
  CHECK(Shape{}.text() == "[]");
  CHECK(Shape{4, 0, 3}.elements() == 0);
}

TEST_CASE("shape: equality is of all sizes") {
  CHECK(Shape{2, 3} == Shape{2, 3});
  CHECK(Shape{2, 3} != Shape{3, 2});
  CHECK(Shape{2, 3} != Shape{2, 3, 1});
  CHECK(Shape{2, 3, 4}.without(2) == Shape{2, 3});
}

TEST_CASE("shape: with, without, inserted") {
  const Shape shape{2, 3, 4};
  CHECK(shape.with(-1, 9) == Shape{2, 3, 9});
  CHECK(shape.without(0) == Shape{3, 4});
  CHECK(shape.without(-2) == Shape{2, 4});
  CHECK(shape.inserted(0, 7) == Shape{7, 2, 3, 4});
  CHECK(shape.inserted(2, 7) == Shape{2, 3, 7, 4});
  CHECK(shape.inserted(-1, 7) == Shape{2, 3, 4, 7});
  CHECK(Shape{}.inserted(0, 5) == Shape{5});
}

TEST_CASE("shape: broadcasting aligns the last axes") {
  CHECK(broadcast({3, 1}, {4}, "add") == Shape{3, 4});
  CHECK(broadcast({4}, {3, 1}, "add") == Shape{3, 4});
  CHECK(broadcast({}, {2, 3}, "add") == Shape{2, 3});
  CHECK(broadcast({1}, {0}, "add") == Shape{0});
  CHECK_THROWS_WITH_AS(broadcast({2, 3}, {2}, "add"), "add: [2, 3] and [2] do not broadcast: 3 against 2",
                       Error);
}

TEST_CASE("shape: errors") {
  const Shape shape{2, 3};
  CHECK_THROWS_WITH_AS(shape[2], "shape: axis 2 of [2, 3], which has 2", Error);
  CHECK_THROWS_WITH_AS(shape[-3], "shape: axis -3 of [2, 3], which has 2", Error);
  CHECK_THROWS_WITH_AS(Shape({2, -1}), "shape: axis 1 has the size -1, sizes are not negative", Error);
  CHECK_THROWS_WITH_AS(Shape({0, -1}), "shape: axis 1 has the size -1, sizes are not negative", Error);
  CHECK_THROWS_WITH_AS(shape.with(0, -5), "shape: axis 0 has the size -5, sizes are not negative", Error);
  CHECK_THROWS_WITH_AS(shape.inserted(4, 1), "shape: no position 4 in [2, 3] for a new axis", Error);
  CHECK_THROWS_WITH_AS(Shape(std::vector<int64_t>(9, 1)), "shape: 9 axes, at most 8 are supported", Error);
  CHECK_THROWS_WITH_AS(Shape({1, 1, 1, 1, 1, 1, 1, 1}).inserted(0, 1),
                       "shape: [1, 1, 1, 1, 1, 1, 1, 1] has no room for another axis", Error);
}

TEST_CASE("shape: more elements than memory can be counted in") {
  const int64_t huge = int64_t{1} << 40;
  const char* text = "shape: [1099511627776, 1099511627776] has too many elements";
  CHECK_THROWS_WITH_AS(Shape({huge, huge}), text, Error);
  CHECK_THROWS_WITH_AS(Shape({huge, 2}).with(1, huge), text, Error);
  CHECK_THROWS_WITH_AS(Shape({huge}).inserted(0, huge), text, Error);
  CHECK(Shape({huge, 0, huge}).elements() == 0);
}
