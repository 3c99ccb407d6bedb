#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

// A line of text as a picture: how much of each pixel the letters cover, 0 to 255. [height, width]
struct LetteredLine {
  int height = 0, width = 0;
  std::vector<uint8_t> coverage;
};

// Draws UTF-8 text, one line of `height` pixels. The letters are those of the system's sans-serif fonts
// (FreeType and fontconfig), each from the first font that has it, where the program is built with these
// libraries and a font is there; otherwise those of stb_easy_font, which has ASCII alone. A character that no
// font has becomes '?', a control character or a byte that is not UTF-8 \xNN. Letters are set one after
// another, without the joining that Arabic or the scripts of India need.
LetteredLine letter(const std::string& text, int height);

// The same text, shortened to what fits into `width` pixels, with ".." at its end if anything is left out.
LetteredLine letter_fitting(const std::string& text, int height, int width);

}  // namespace tessera
