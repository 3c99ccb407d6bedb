#include "apps/reporting/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/core/printable.h"

namespace tessera {

namespace {

// Scales the value to below 1000 and appends the prefix of its unit. `digits` are those behind the point;
// values from 100 on have one less.
std::string scaled(double value, int digits) {
  static constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t step = 0;
  for (; std::abs(value) >= 999.995 && step + 1 < std::size(prefixes); ++step) value /= 1000;
  if (step == 0 && value == std::floor(value))
    digits = 0;
  else if (std::abs(value) >= 100)
    --digits;
  return fmt::format("{:.{}f} {}", value, digits, prefixes[step]);
}

std::string cell(const Column& column, const Json& row) {
  const auto found = row.find(column.key);
  return found == row.end() || found->is_null() ? "-" : printable(column.format(*found), false);
}

bool aligned_left(const Column& column) { return column.format == as_text || column.format == as_shape; }

// The width of UTF-8 text in a terminal, counted in characters.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, size_t width, bool left) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return left ? text + space : space + text;
}

void print_line(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  fmt::print("{}\n", line);
}

}  // namespace

std::string as_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& each : value) text += (text.empty() ? "" : " ") + as_text(each);
  return text;
}

std::string as_integer(const Json& value) {
  std::string text = value.dump();
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > (text.front() == '-' ? 1 : 0); at -= 3)
    text.insert(static_cast<size_t>(at), " ");
  return text;
}

std::string as_metric(const Json& value) {
  std::string text = scaled(value.get<double>(), 3);
  return text.ends_with(' ') ? text.substr(0, text.size() - 1) : text;
}

std::string as_bytes(const Json& value) { return scaled(value.get<double>(), 2) + "B"; }

std::string as_percent(const Json& value) { return fmt::format("{:.1f} %", 100 * value.get<double>()); }

std::string as_seconds(const Json& value) {
  const double seconds = value.get<double>();
  if (seconds == 0) return "0 s";
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  return seconds >= 1e-3 ? fmt::format("{:.2f} ms", seconds * 1e3) : fmt::format("{:.2f} us", seconds * 1e6);
}

std::string as_loss(const Json& value) { return fmt::format("{:.4f}", value.get<double>()); }

std::string as_rate(const Json& value) { return fmt::format("{:.1f}", value.get<double>()); }

std::string as_error(const Json& value) { return fmt::format("{:.1e}", value.get<double>()); }

std::string as_shape(const Json& value) {
  std::string text;
  for (const Json& size : value) text += (text.empty() ? "" : ", ") + size.dump();
  return "[" + text + "]";
}

void print_table(std::span<const Column> columns, const Json& rows) {
  std::vector<size_t> widths;
  for (const Column& column : columns) {
    size_t width = width_of(column.title);
    for (const Json& row : rows) width = std::max(width, width_of(cell(column, row)));
    widths.push_back(width);
  }
  const auto print_cells = [&](auto&& text_of) {
    std::string line;
    for (size_t i = 0; i < columns.size(); ++i)
      line += (i ? "  " : "") + padded(text_of(columns[i]), widths[i], aligned_left(columns[i]));
    print_line(std::move(line));
  };
  print_cells([](const Column& column) { return std::string(column.title); });
  for (const Json& row : rows) print_cells([&](const Column& column) { return cell(column, row); });
}

void print_record(std::span<const Column> columns, const Json& row) {
  size_t width = 0;
  for (const Column& column : columns) width = std::max(width, width_of(column.title));
  for (const Column& column : columns)
    print_line(padded(column.title, width, true) + "  " + cell(column, row));
}

void print_record(std::span<const Column> columns, const Json& row, bool json) {
  if (json) return print_json(row);
  print_record(columns, row);
}

void print_json(const Json& value) {
  fmt::print("{}\n", value.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_rows(std::span<const Column> columns, const Json& rows, bool json) {
  if (json)
    print_json(rows);
  else
    print_table(columns, rows);
}

}  // namespace tessera
