#include "apps/reporting/watch_record.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "apps/training/watch_file.h"
#include "engine/core/error.h"
#include "engine/io/file.h"

namespace tessera {

namespace {

// Names of modules hold no comma, so no field is quoted.
std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find(',', at), line.size());
    fields.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return fields;
}

template <class T> T number_of(std::string_view field, T otherwise, const std::string& where) {
  if (field.empty()) return otherwise;
  T value{};
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  check(error == std::errc() && end == field.data() + field.size(), where, ": '", field, "' is no number");
  return value;
}

WatchRow row_of(std::string_view line, const std::string& where) {
  const std::vector<LayerColumn>& columns = layer_columns();
  const std::vector<std::string_view> fields = fields_of(line);
  check(fields.size() == 3 + columns.size(), where, " has ", fields.size(), " fields, wanted ",
        3 + columns.size());
  WatchRow row{number_of<int64_t>(fields[0], 0, where), {.layer = std::string(fields[1])}};
  row.figures.head = number_of<int64_t>(fields[2], -1, where);
  for (size_t c = 0; c < columns.size(); ++c)
    row.figures.*columns[c].value = number_of(fields[3 + c], LayerFigures::none, where);
  return row;
}

}  // namespace

std::vector<WatchRow> read_watch_file(const std::filesystem::path& run) {
  const std::filesystem::path path = WatchFile::path_in(run);
  if (!std::filesystem::exists(path)) return {};
  const std::string text = read_text(path);
  std::vector<WatchRow> rows;
  int64_t number = 0;
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string_view line = std::string_view(text).substr(at, end - at);
    const std::string where = path.string() + ": line " + std::to_string(++number);
    if (number == 1)
      check(line == WatchFile::head(), where, ": '", line, "', wanted '", WatchFile::head(), "'");
    else
      rows.push_back(row_of(line, where));
  }
  return rows;
}

}  // namespace tessera
