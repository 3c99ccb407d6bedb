#include "apps/reporting/lettering.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "apps/reporting/glyphs.h"
#include "engine/core/printable.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include <stb/stb_easy_font.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

namespace tessera {

namespace {

constexpr int dots_high = 12;  // of a line in stb_easy_font

// The characters of a text that is UTF-8 throughout.
std::u32string characters_of(const std::string& utf8) {
  std::u32string all;
  for (const char byte : utf8) {
    const auto bits = static_cast<uint8_t>(byte);
    if ((bits & 0xC0) == 0x80 && !all.empty())  // a further byte of the character
      all.back() = all.back() << 6 | (bits & 0x3F);
    else
      all += bits < 0x80 ? bits : bits < 0xE0 ? bits & 0x1F : bits < 0xF0 ? bits & 0x0F : bits & 0x07;
  }
  return all;
}

std::string ascii_of(const std::u32string& characters) {
  std::string text;
  for (const char32_t c : characters) text += c >= U' ' && c <= U'~' ? static_cast<char>(c) : '?';
  return text;
}

struct Corner {
  float x, y, z;
  std::array<uint8_t, 4> colour;
};

// The letters of stb_easy_font, each dot enlarged to a square.
LetteredLine by_dots(std::string text, int height) {
  const int scale = std::max(1, height / dots_high);
  LetteredLine line{height, scale * stb_easy_font_width(text.data()), {}};
  line.coverage.resize(static_cast<size_t>(line.height) * static_cast<size_t>(line.width));
  std::vector<Corner> corners(text.size() * 64 + 64);  // stb_easy_font needs 270 bytes a letter on average
  const int quads = stb_easy_font_print(0, 0, text.data(), nullptr, corners.data(),
                                        static_cast<int>(corners.size() * sizeof(Corner)));
  const auto at = [&](float dots, int most) {
    return std::clamp(static_cast<int>(std::lround(dots)) * scale, 0, most);
  };
  for (int q = 0; q < quads; ++q) {
    const Corner &first = corners[static_cast<size_t>(4 * q)],
                 &last = corners[static_cast<size_t>(4 * q + 2)];
    for (int y = at(first.y, line.height); y < at(last.y, line.height); ++y) {
      const auto row = line.coverage.begin() + int64_t{y} * line.width;
      std::fill(row + at(first.x, line.width), row + at(last.x, line.width), uint8_t{255});
    }
  }
  return line;
}

LetteredLine lettered(const std::u32string& characters, int height) {
  if (std::optional<LetteredLine> line = by_fonts(characters, height)) return std::move(*line);
  return by_dots(ascii_of(characters), height);
}

}  // namespace

LetteredLine letter(const std::string& text, int height) {
  return lettered(characters_of(printable(text, false)), height);
}

LetteredLine letter_fitting(const std::string& text, int height, int width) {
  std::u32string characters = characters_of(printable(text, false));
  LetteredLine line = lettered(characters, height);
  while (line.width > width && !characters.empty()) {
    characters.pop_back();
    line = lettered(characters + U"..", height);
  }
  return line;
}

}  // namespace tessera
