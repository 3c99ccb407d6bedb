#pragma once

// Tables, for people and for programs: the rows are JSON objects, --json prints them as they are, and columns
// say how a person reads them.

#include <span>
#include <string>

#include "engine/io/json.h"

namespace tessera {

// How a value is written for a person. An absent or null value is written as "-".
using Format = std::string (*)(const Json& value);

std::string as_text(const Json& value);     // a string as it is; a list with spaces between
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
  const char* key;  // of the row's object
  const char* title;
  Format format = as_text;  // as_text, as_shape: to the left; others are numbers, to the right
};

// Prints an array of objects with aligned columns to stdout.
void print_table(std::span<const Column> columns, const Json& rows);

// Prints a title a line with its value, for one object.
void print_record(std::span<const Column> columns, const Json& row);
// Either way.
void print_record(std::span<const Column> columns, const Json& row, bool json);

// Prints JSON to stdout.
void print_json(const Json& value);

// The rows either way.
void print_rows(std::span<const Column> columns, const Json& rows, bool json);

}  // namespace tessera
