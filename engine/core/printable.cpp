#include "engine/core/printable.h"

#include <cstdint>

namespace tessera {

namespace {

// The length of the UTF-8 character that begins here, 0 where none does.
size_t character_at(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  const size_t length = first < 0x80                    ? 1
                        : first >= 0xc2 && first < 0xe0 ? 2
                        : (first & 0xf0) == 0xe0        ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  return length;
}

bool is_control(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<uint8_t>(character[1]) < 0xa0;  // C1
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = character_at(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text, bool lines) {
  constexpr char hex[] = "0123456789abcdef";
  std::string shown;
  while (!text.empty()) {
    const size_t length = character_at(text);
    const bool stays = length > 0 && (!is_control(text.substr(0, length)) || (lines && text[0] == '\n'));
    const size_t taken = length > 0 ? length : 1;
    if (stays) {
      shown += text.substr(0, taken);
    } else {
      for (const char c : text.substr(0, taken)) {
        shown += "\\x";
        shown += hex[static_cast<uint8_t>(c) >> 4];
        shown += hex[static_cast<uint8_t>(c) & 15];
      }
    }
    text.remove_prefix(taken);
  }
  return shown;
}

}  // namespace tessera
