#include "engine/core/random.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <vector>

#include "engine/core/error.h"

using namespace tessera;

// The known answers of the authors' own library, for 4x32 words and ten rounds.
TEST_CASE("philox: known answers") {
  using Words = std::array<uint32_t, 4>;
  CHECK(philox(0, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("random: the bits are those of philox, in order") {
  Random random(7, 9);
  for (uint64_t i = 0; i < 10; ++i) CHECK(random.bits() == philox(7, i / 4, 9)[i % 4]);
}

TEST_CASE("random: uniform draws fill [0, 1) evenly") {
  Random random(1);
  std::array<int, 20> bins{};
  double sum = 0, least = 1, most = 0;
  constexpr int draws = 200000;
  for (int i = 0; i < draws; ++i) {
    const double u = random.uniform();
    least = std::min(least, u);
    most = std::max(most, u);
    sum += u;
    ++bins[static_cast<size_t>(u * 20)];
  }
  CHECK(least >= 0);
  CHECK(most < 1);
  CHECK(sum / draws == doctest::Approx(0.5).epsilon(0.005));
  double chi_square = 0;
  for (const int count : bins) chi_square += std::pow(count - draws / 20.0, 2) / (draws / 20.0);
  CHECK(chi_square < 43.8);  // 19 degrees of freedom, one in a thousand is beyond
  CHECK(unit_float(0xffffffffu) < 1.0f);
  CHECK(unit_float(0) == 0.0f);
}

TEST_CASE("random: normal draws have their moments") {
  Random random(2);
  double sum = 0, squares = 0, cubes = 0;
  constexpr int draws = 200000;
  for (int i = 0; i < draws; ++i) {
    const double z = random.normal();
    sum += z;
    squares += z * z;
    cubes += z * z * z;
  }
  CHECK(std::abs(sum / draws) < 0.01);
  CHECK(std::abs(squares / draws - 1) < 0.02);
  CHECK(std::abs(cubes / draws) < 0.05);
}

TEST_CASE("random: truncated, ranged, whole and yes-or-no draws") {
  Random random(3);
  std::array<int, 7> counts{};
  int yes = 0;
  for (int i = 0; i < 7000; ++i) {
    const double z = random.truncated_normal(-0.5, 2), u = random.uniform(-3, -1);
    REQUIRE((z >= -0.5 && z <= 2));
    REQUIRE((u >= -3 && u < -1));
    const int64_t k = random.below(7);
    REQUIRE((k >= 0 && k < 7));
    ++counts[static_cast<size_t>(k)];
    yes += random.chance(0.25);
  }
  for (const int count : counts) CHECK(std::abs(count - 1000) < 150);
  CHECK(std::abs(yes - 1750) < 150);
  CHECK(random.below(1) == 0);
  CHECK_THROWS_WITH_AS(random.below(0), "random: below(0) has no value to give", Error);
  CHECK_THROWS_WITH_AS(random.truncated_normal(1, 1), "random: no normal value between 1 and 1", Error);
}

TEST_CASE("random: a saved state goes on exactly, at any place in a block") {
  for (int drawn = 0; drawn < 9; ++drawn) {
    Random random(5, 6);
    for (int i = 0; i < drawn; ++i) random.bits();
    Random resumed(random.state());
    CHECK(resumed.state() == random.state());
    for (int i = 0; i < 9; ++i) CHECK(resumed.bits() == random.bits());
  }
}

TEST_CASE("random: split streams depend on the tag alone, and differ") {
  Random random(11);
  const Random before = random.split(1);
  random.bits();
  CHECK(random.split(1).state() == before.state());
  CHECK(random.split(2).state() != before.state());
  CHECK(Random(12).split(1).state() != before.state());
  CHECK(before.split(1).state() != before.state());
  Random a = random.split(1), b = random.split(2);
  int same = 0;
  for (int i = 0; i < 1000; ++i) same += a.bits() == b.bits();
  CHECK(same == 0);
}
