#pragma once

// The JSON parser that json.cpp and safetensors.cpp share. For .cpp files only: it includes all of
// nlohmann's.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/printable.h"

namespace tessera::json_parse {

constexpr size_t deepest = 100;  // levels of objects and lists

// Upper bounds for the memory that a document takes: a value in a growing list, an object or list, a key, and
// the key's entry in the set that finds repeated keys while its object is open. Their sum must not exceed the
// size of the text plus the allowance.
constexpr size_t value_bytes = 48, container_bytes = 96, key_bytes = 144, known_key_bytes = 96;
constexpr size_t allowance = size_t{48} << 20;

// `text` of a file for an error: its control characters escaped, line ends too, cut to at most `limit` bytes
// at a boundary of characters, with "..." in place of the rest.
inline std::string shortened(std::string_view given, size_t limit) {
  const std::string text = printable(given, false);
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0u) == 0x80u) --limit;
  return text.substr(0, limit) + "...";
}

// "line 3, column 7" for the character at `offset`.
inline std::string position(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::string_view in_line = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
  const auto column = 1 + std::count_if(in_line.begin(), in_line.end(), [](char c) {
                        return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
                      });
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// An iterator over characters that records how far the parser has read.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    const Cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** reached_;
};

// The library's error message without its own prefix and position.
inline std::string complaint(const std::string& what) {
  size_t start = what.find("] ");
  start = start == what.npos ? 0 : start + 2;
  if (what.compare(start, 11, "parse error") == 0)
    if (const size_t colon = what.find(": ", start); colon != what.npos) start = colon + 2;
  return shortened(what.substr(start), 200);
}

// Builds the document from the parser's events. The library's own parser with callbacks would keep the last
// of several values of one key, and it is slow at the end of every object in a large document.
template <class J> class Builder {
 public:
  Builder(std::string_view text, std::string where)
      : text_(text), where_(std::move(where)), reached_(text.data()) {}

  J build() && {
    J::sax_parse(Cursor(text_.data(), &reached_), Cursor(text_.data() + text_.size(), &reached_), this);
    return std::move(root_);
  }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(typename J::number_integer_t value) { return add(value); }
  bool number_unsigned(typename J::number_unsigned_t value) { return add(value); }
  bool number_float(typename J::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) {
    spend(value.size() > 15 ? value.size() + 32 : 32);
    return add(std::move(value));
  }
  bool binary(typename J::binary_t& value) { return add(std::move(value)); }

  bool start_object(size_t) {
    keys_.emplace_back();
    return open(J::object());
  }
  bool end_object() {
    spent_ -= known_key_bytes * keys_.back().size();
    keys_.pop_back();
    return close();
  }
  bool start_array(size_t) { return open(J::array()); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    if (!keys_.back().insert(name).second)
      fail(where_, ": ", position(text_, offset() - std::min(offset(), name.size() + 2)), ": the key '",
           shortened(name, 80), "' is given twice in one object");
    spend(key_bytes + known_key_bytes + (name.size() > 15 ? 2 * name.size() : 0));
    key_ = std::move(name);
    return true;
  }

  bool parse_error(size_t byte, const std::string&, const typename J::exception& error) {
    const size_t at = std::min(byte == 0 ? 0 : byte - 1, text_.size());
    fail(where_, ": ", position(text_, at), ": ", complaint(error.what()));
  }

 private:
  size_t offset() const { return static_cast<size_t>(reached_ - text_.data()); }

  J& place(J value) {
    if (open_.empty()) return root_ = std::move(value);
    J& parent = *open_.back();
    if (parent.is_object()) return member(parent, std::move(value));
    parent.push_back(std::move(value));
    return parent.back();
  }

  // The new value of key_. An object in the order of its keys would look for the key in all of them, and a
  // file of 100,000 keys take half a minute; key() has looked in a set.
  J& member(J& parent, J value) {
    auto& members = parent.template get_ref<typename J::object_t&>();
    if constexpr (requires { members.emplace_back(std::move(key_), std::move(value)); })
      return members.emplace_back(std::move(key_), std::move(value)).second;
    else
      return members[key_] = std::move(value);
  }

  void spend(size_t bytes) {
    spent_ += bytes;
    if (spent_ > text_.size() + allowance)
      fail(where_, ": ", position(text_, offset()), ": more keys and values than are read from ",
           text_.size(), " bytes");
  }

  template <class T> bool add(T&& value) {
    spend(value_bytes);
    place(J(std::forward<T>(value)));
    return true;
  }

  bool open(J container) {
    if (open_.size() == deepest)
      fail(where_, ": ", position(text_, offset() - 1), ": more than ", deepest,
           " levels of objects and lists");
    spend(value_bytes + container_bytes);
    open_.push_back(&place(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  std::string where_;
  const char* reached_;
  J root_;
  size_t spent_ = 0;
  std::vector<J*> open_;                               // the containers around the next value
  std::vector<std::unordered_set<std::string>> keys_;  // the keys of the objects among them
  std::string key_;
};

// Parses `text` into a J, a basic_json of nlohmann's. Fails as parse_json() does.
template <class J> J parse(std::string_view text, const std::string& where) {
  return Builder<J>(text, where).build();
}

}  // namespace tessera::json_parse
