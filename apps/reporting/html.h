#pragma once

// HTML pages of one file, which open from disk: style, script and pictures are inside.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/image.h"

namespace tessera {

// Escapes text for HTML: & < > " ' become entities; control characters and bytes that are no UTF-8 become
// U+FFFD.
std::string escaped(std::string_view text);

// Encodes bytes in base 64 with padding (RFC 4648).
std::string base64(std::span<const uint8_t> bytes);

// An <img> that holds the picture as PNG, `side` CSS pixels high, without blur where it is enlarged; `what`
// is the text for readers who cannot see it.
std::string picture(const Image& image, int side, const std::string& what);

// A whole page in the project's style, light or dark by the reader's setting; `body` is HTML. The browser
// loads it again every `refresh` seconds, if that is not 0.
std::string page(const std::string& title, const std::string& body, int refresh = 0);

// A framed part of a page: the title, a line of explanation (may be empty), the content as HTML. A wide card
// takes the whole row.
std::string card(const std::string& title, const std::string& note, const std::string& content,
                 bool wide = false);
// Cards side by side, if the window is wide enough.
std::string cards(const std::vector<std::string>& cards);
std::string heading(const std::string& text);
// A summary line that opens to show the content.
std::string collapsible(const std::string& summary, const std::string& content);

// A large number at the head of a page, with its name and a note below.
struct Figure {
  std::string value, name, note;
};
std::string figures(const std::vector<Figure>& figures);

// A table; cells are HTML. A column whose title begins with '#' (which is not shown) holds numbers and is
// aligned to the right.
std::string html_table(const std::vector<std::string>& columns,
                       const std::vector<std::vector<std::string>>& rows);

// A cell with a bar whose length is `share` (0 to 1) of the cell, and `text` beside it.
std::string bar_cell(double share, const std::string& text);

}  // namespace tessera
