#include "apps/reporting/lettering.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "apps/reporting/glyphs.h"
#include "apps/reporting/sheet.h"

using namespace tessera;

namespace {

int64_t ink_of(const LetteredLine& line) {
  return std::ranges::count_if(line.coverage, [](uint8_t covered) { return covered > 127; });
}

bool same(const LetteredLine& a, const LetteredLine& b) {
  return a.width == b.width && a.coverage == b.coverage;
}

}  // namespace

TEST_CASE("a line of text has ink, and as many pixels as it says") {
  for (const char* text : {"goldfish", "Bär & Café", "日本"}) {
    CAPTURE(text);
    const LetteredLine line = letter(text, 24);
    CHECK(line.height == 24);
    CHECK(line.coverage.size() == static_cast<size_t>(line.height) * static_cast<size_t>(line.width));
    CHECK(ink_of(line) > 10);
  }
  CHECK(letter("", 24).width == 0);
  CHECK(letter("goldfish, goldfish", 24).width > 2 * letter("goldfish", 24).width);
}

TEST_CASE("letters beyond ASCII are drawn, where there are fonts") {
  if (!by_fonts(U"a", 24)) {
    MESSAGE("skipped: the program is built without FreeType, or no font is here");
    return;
  }
  CHECK_FALSE(same(letter("ä", 24), letter("?", 24)));
  CHECK_FALSE(same(letter("ä", 24), letter("a", 24)));
  CHECK(same(letter("\xff", 24), letter("\\xff", 24)));    // no UTF-8
  CHECK(same(letter("\U000F0000", 24), letter("?", 24)));  // for private use, so no font has it
}

TEST_CASE("Arabic letters join, and the line reads from right to left, where they are shaped") {
  const auto line = by_fonts(U"\u0644\u0627", 48), other = by_fonts(U"\u0627\u0644", 48);  // lam, alef
  const auto lam = by_fonts(U"\u0644", 48), alef = by_fonts(U"\u0627", 48), unknown = by_fonts(U"?", 48);
  if (!line || same(*lam, *unknown)) {
    MESSAGE("skipped: no fonts, or none that has Arabic letters");
    return;
  }
  if (line->width == lam->width + alef->width) {  // together they are one narrow sign
    MESSAGE("skipped: the program is built without libraqm");
    return;
  }
  CHECK(line->width < lam->width + alef->width);
  CHECK(other->width == lam->width + alef->width);  // an alef joins nothing behind it
  // The first letter stands at the right: there is a lone alef.
  const auto column = [](const LetteredLine& l, int x) {
    int ink = 0;
    for (int y = 0; y < l.height; ++y) ink += l.coverage[static_cast<size_t>(y * l.width + x)];
    return ink;
  };
  int differ = 0;
  for (int x = 1; x <= alef->width / 2; ++x)
    differ += column(*other, other->width - x) != column(*alef, alef->width - x);
  CHECK(differ == 0);
}

TEST_CASE("text that is too wide is shortened") {
  const std::string text = "a name that is far too long for its place";
  const LetteredLine whole = letter(text, 24), part = letter_fitting(text, 24, 120);
  REQUIRE(whole.width > 120);
  CHECK(part.width <= 120);
  CHECK(part.width > 90);
  CHECK(same(letter_fitting(text, 24, whole.width), whole));
  CHECK(letter_fitting(text, 24, 1).width <= letter("..", 24).width);
}

TEST_CASE("a sheet cuts off what leaves it") {
  Sheet sheet(30, 60);
  const Image blank = sheet.image();
  sheet.write("far beyond the sheet's end", 20, 40, 1000);
  CHECK(sheet.image().pixels != blank.pixels);
  CHECK(sheet.image().pixels.size() == blank.pixels.size());
}
