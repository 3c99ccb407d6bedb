#pragma once

// Tables for people and for programs. The rows are JSON objects: --json prints them unchanged, and for people
// a list of columns says which values are shown and how they are written.

#include <span>
#include <string>

#include "engine/io/json.h"

namespace tessera {

// Writes a value for people. An absent or null value is written as "-" without calling it.
using CellFormat = std::string (*)(const Json& value);

std::string as_text(const Json& value);     // a string unchanged; a list with spaces between
std::string as_integer(const Json& value);  // 12 345 678
std::string as_metric(const Json& value);   // 2.757 M, 189.75 M, 6.559 G
std::string as_bytes(const Json& value);    // 11.03 MB; k, M, G are powers of 1000
std::string as_percent(const Json& value);  // 0.7123 -> 71.2 %
std::string as_seconds(const Json& value);  // 1.23 s, 45.6 ms, 7.8 us
std::string as_loss(const Json& value);     // 0.1323
std::string as_rate(const Json& value);     // 1234.5
std::string as_error(const Json& value);    // 3.2e-09
std::string as_shape(const Json& value);    // [1, 65, 192]

struct Column {
  const char* key;  // in the row's object
  const char* title;
  CellFormat format = as_text;  // as_text and as_shape are aligned left, numbers right
};

// Prints an array of objects with aligned columns to stdout.
void print_table(std::span<const Column> columns, const Json& rows);

// Prints one object to stdout, one line with title and value for each column.
void print_record(std::span<const Column> columns, const Json& row);
// Prints one object, as JSON or for people.
void print_record(std::span<const Column> columns, const Json& row, bool json);

// Prints JSON to stdout.
void print_json(const Json& value);

// Prints rows, as JSON or as a table.
void print_rows(std::span<const Column> columns, const Json& rows, bool json);

}  // namespace tessera
