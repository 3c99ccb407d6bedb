#include "apps/training/csv.h"

#include <charconv>

namespace tessera {

namespace {

// Tells whether a spreadsheet would compute the field: it begins as a formula does and is no number.
bool is_formula(const std::string& field) {
  if (field.empty() || std::string("=+-@\t\r").find(field[0]) == std::string::npos) return false;
  double number;
  const char* const end = field.data() + field.size();
  const char* const begin = field.data() + (field[0] == '+' ? 1 : 0);
  return std::from_chars(begin, end, number).ptr != end;
}

std::string neutral(const std::string& field) { return is_formula(field) ? "'" + field : field; }

}  // namespace

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) line += ',';
    const std::string field = neutral(fields[i]);
    if (field.find_first_of(",\"\r\n") == std::string::npos) {
      line += field;
      continue;
    }
    line += '"';
    for (const char c : field) line += c == '"' ? "\"\"" : std::string(1, c);
    line += '"';
  }
  return line + "\n";
}

}  // namespace tessera
