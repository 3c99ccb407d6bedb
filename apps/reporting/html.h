#pragma once

// HTML pages of one file, that open from disk and need nothing else: style, script and pictures are inside.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/image.h"

namespace tessera {

// Text as HTML shows it: & < > " ' are written as entities; bytes that no page may hold become U+FFFD.
std::string escaped(std::string_view text);

// Base 64 with padding (RFC 4648).
std::string base64(std::span<const uint8_t> bytes);

// The picture inside the page, as PNG; shown `side` CSS pixels high, its pixels not blurred where enlarged.
std::string picture(const Image& image, int side, const std::string& what);

// A whole page in the project's style, light or dark as the reader has it; `body` is HTML.
std::string page(const std::string& title, const std::string& body);

// A framed part of a page: the title, a line of explanation (may be empty), the content as HTML. A wide one
// takes the whole row.
std::string card(const std::string& title, const std::string& note, const std::string& content,
                 bool wide = false);
// Cards side by side where the window has room.
std::string cards(const std::vector<std::string>& cards);
std::string heading(const std::string& text);
// A line that opens to show the content.
std::string folded(const std::string& summary, const std::string& content);

// The figures at the head of a page.
struct Figure {
  std::string value, name, note;
};
std::string figures(const std::vector<Figure>& figures);

// A table; cells are HTML. Columns whose title begins with '#' (which is not shown) are numbers, to the
// right.
std::string html_table(const std::vector<std::string>& columns,
                       const std::vector<std::vector<std::string>>& rows);

// A cell: a bar whose length is `share` of the cell, with `text` beside it.
std::string bar_cell(double share, const std::string& text);

}  // namespace tessera
