#include "engine/io/field_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tessera {

namespace {

// "groups[3].pattern" -> "groups[].pattern"
std::string without_numbers(const std::string& path) {
  std::string text;
  bool inside = false;
  for (const char c : path) {
    if (c == ']') inside = false;
    if (!inside) text += c;
    if (c == '[') inside = true;
  }
  return text;
}

}  // namespace

FieldNote& FieldRecord::note(const std::string& where, const std::string& path) {
  const std::string general = without_numbers(path);
  const auto found = std::find_if(notes_.begin(), notes_.end(),
                                  [&](const FieldNote& n) { return n.where == where && n.path == general; });
  if (found != notes_.end()) return *found;
  return notes_.emplace_back(
      FieldNote{.where = where, .path = general, .type = "", .choices = {}, .fallback = ""});
}

}  // namespace tessera
