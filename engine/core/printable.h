#pragma once

#include <string>
#include <string_view>

namespace tessera {

// The text with its control characters (those of C0 and C1, and DEL) and bytes that are no UTF-8 as \xNN, for
// a terminal: a name from a file may not move the cursor, set colours, or forge a line. Line ends stay if
// `lines`.
std::string printable(std::string_view text, bool lines = true);

// Whether the text is UTF-8 throughout, as names in JSON and in tensor files must be.
bool is_utf8(std::string_view text);

}  // namespace tessera
