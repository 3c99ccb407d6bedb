#include "engine/io/json.h"

#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "engine/core/error.h"
#include "engine/io/field_record.h"
#include "engine/io/file.h"
#include "engine/io/parse.h"

namespace tessera {

namespace {

template <class T> constexpr bool is_vector = false;
template <class T> constexpr bool is_vector<std::vector<T>> = true;

// The text of a value for an error, shortened.
std::string shown(const Json& value) {
  return json_parse::shortened(value.dump(-1, ' ', false, Json::error_handler_t::replace), 60);
}

template <class T> std::string wanted() {
  if constexpr (is_vector<T>)
    return "a list, each " + wanted<typename T::value_type>();
  else if constexpr (std::is_same_v<T, bool>)
    return "true or false";
  else if constexpr (std::is_same_v<T, double>)
    return "a number";
  else if constexpr (std::is_same_v<T, std::string>)
    return "a string";
  else
    return "an integer";
}

template <class T> bool has_type(const Json& value) {
  if constexpr (std::is_same_v<T, bool>)
    return value.is_boolean();
  else if constexpr (std::is_same_v<T, double>)
    return value.is_number();
  else if constexpr (std::is_same_v<T, std::string>)
    return value.is_string();
  else
    return value.is_number_integer();
}

// Whether T can hold the integer.
template <class T> bool fits(const Json& value) {
  return value.is_number_unsigned() ? std::in_range<T>(value.get<uint64_t>())
                                    : std::in_range<T>(value.get<int64_t>());
}

// `value` as a T; errors call it `name` of `fields`.
template <class T>
T convert(const Fields& fields, const std::string& name, const Json& value, const Range& range) {
  if constexpr (is_vector<T>) {
    if (!value.is_array()) fields.fail_at(name, "is ", shown(value), ", wanted ", wanted<T>());
    T list;
    for (size_t i = 0; i < value.size(); ++i)
      list.push_back(
          convert<typename T::value_type>(fields, name + "[" + std::to_string(i) + "]", value[i], range));
    return list;
  } else {
    if (!has_type<T>(value)) fields.fail_at(name, "is ", shown(value), ", wanted ", wanted<T>());
    if constexpr (std::is_same_v<T, int> || std::is_same_v<T, int64_t>)
      if (!fits<T>(value))
        fields.fail_at(name, "is ", shown(value), ", wanted an integer of at most ", sizeof(T) * 8, " bits");
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
      if (!range.holds(value.get<double>()))
        fields.fail_at(name, "is ", shown(value), ", wanted ", wanted<T>(), " ", range.text());
    return value.get<T>();
  }
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  return json_parse::parse<Json>(text, where);
}

Json read_json(const std::filesystem::path& path) { return parse_json(read_text(path), path.string()); }

void write_json(const std::filesystem::path& path, const Json& document) {
  try {
    write_file_atomically(path, document.dump(2) + "\n");
  } catch (const Json::exception& error) {
    fail(path.string(), ": not to be written as JSON: ", json_parse::complaint(error.what()));
  }
}

Json without_nulls(const Json& document) {
  if (!document.is_structured()) return document;
  Json kept = document.is_object() ? Json::object() : Json::array();
  for (const auto& [key, value] : document.items())
    if (document.is_array())
      kept.push_back(without_nulls(value));
    else if (!value.is_null())
      kept[key] = without_nulls(value);
  return kept;
}

std::string Range::text() const {
  std::ostringstream text;
  text.precision(10);
  if (max_ == infinity)
    text << (open_ ? "above " : "of at least ") << min_;
  else if (min_ == -infinity)
    text << "of at most " << max_;
  else
    text << "from " << min_ << " to " << max_;
  return text.str();
}

Fields::Fields(const Json& object, std::string where, std::string path)
    : object_(&object), where_(std::move(where)), path_(std::move(path)) {
  if (!object.is_object())
    fail(where_, ": ", path_, path_.empty() ? "" : " ", "is ", shown(object), ", wanted an object");
}

namespace {

bool is_any(const Range& range) {
  constexpr double most = std::numeric_limits<double>::max();
  return range.holds(-most) && range.holds(most);
}

// Notes the key's type, and its default where there is one.
template <class T>
void record(const std::string& where, const std::string& path, const Range& range, const T* fallback) {
  FieldRecord* record = FieldRecord::current();
  if (!record) return;
  FieldNote& note = record->note(where, path);
  note.type = wanted<T>() + (is_any(range) ? "" : " " + range.text());
  note.required = fallback == nullptr;
  if (fallback) note.fallback = Json(*fallback).dump();
}

// Notes a key that holds an object or a list of objects, or that is read elsewhere.
void record(const std::string& where, const std::string& path, const char* type, bool required) {
  FieldRecord* record = FieldRecord::current();
  if (!record) return;
  FieldNote& note = record->note(where, path);
  note.type = type;
  note.required = required;
}

void record(const std::string& where, const std::string& path, std::initializer_list<const char*> choices) {
  FieldRecord* record = FieldRecord::current();
  if (!record) return;
  std::vector<std::string>& known = record->note(where, path).choices;
  for (const char* choice : choices)
    if (std::find(known.begin(), known.end(), choice) == known.end()) known.emplace_back(choice);
}

}  // namespace

template <class T> T Fields::get(std::string_view key, const Range& range) {
  record<T>(where_, joined(key), range, nullptr);
  return convert<T>(*this, std::string(key), required(key), range);
}

template <class T> T Fields::get(std::string_view key, T fallback, const Range& range) {
  asked_.emplace_back(key);
  record(where_, joined(key), range, &fallback);
  const Json* value = peek(key);
  return value ? convert<T>(*this, std::string(key), *value, range) : fallback;
}

std::string Fields::get(std::string_view key, const char* fallback) {
  return get<std::string>(key, fallback);
}

namespace {

std::string one_of(const Fields& fields, std::string_view key, std::initializer_list<const char*> choices,
                   std::string given) {
  const std::vector<std::string> known(choices.begin(), choices.end());
  if (std::find(known.begin(), known.end(), given) != known.end()) return given;
  std::string all;
  for (const std::string& choice : known) all += (all.empty() ? "" : ", ") + choice;
  fields.fail_at(key, "is '", json_parse::shortened(given, 60), "'; there are ", all,
                 did_you_mean(given, known));
}

}  // namespace

std::string Fields::choice(std::string_view key, std::initializer_list<const char*> choices) {
  const std::string given = get<std::string>(key);
  record(where_, joined(key), choices);
  return one_of(*this, key, choices, given);
}

std::string Fields::choice(std::string_view key, std::initializer_list<const char*> choices,
                           const char* fallback) {
  const std::string given = get(key, fallback);
  record(where_, joined(key), choices);
  return one_of(*this, key, choices, given);
}

Fields Fields::object(std::string_view key) {
  record(where_, joined(key), "an object", true);
  return Fields(required(key), where_, joined(key));
}

std::optional<Fields> Fields::find_object(std::string_view key) {
  asked_.emplace_back(key);
  record(where_, joined(key), "an object", false);
  const Json* value = peek(key);
  return value ? std::optional(Fields(*value, where_, joined(key))) : std::nullopt;
}

std::vector<Fields> Fields::objects(std::string_view key) {
  asked_.emplace_back(key);
  record(where_, joined(key), "a list of objects", false);
  const Json* value = peek(key);
  std::vector<Fields> list;
  if (!value) return list;
  if (!value->is_array()) fail_at(key, "is ", shown(*value), ", wanted a list of objects");
  for (size_t i = 0; i < value->size(); ++i)
    list.emplace_back((*value)[i], where_, joined(key) + "[" + std::to_string(i) + "]");
  return list;
}

const Json* Fields::find(std::string_view key) {
  asked_.emplace_back(key);
  if (FieldRecord* record = FieldRecord::current()) record->note(where_, joined(key));
  return peek(key);
}

bool Fields::has(std::string_view key) {
  asked_.emplace_back(key);
  return peek(key) != nullptr;
}

bool Fields::is_list(std::string_view key) const {
  const Json* value = peek(key);
  return value && value->is_array();
}

void Fields::done() const {
  for (const auto& [key, value] : object_->items())
    if (std::find(asked_.begin(), asked_.end(), key) == asked_.end())
      fail_at(json_parse::shortened(key, 80), "is not known here", did_you_mean(key, asked_));
}

const Json* Fields::peek(std::string_view key) const {
  const auto at = object_->find(std::string(key));
  return at == object_->end() || at->is_null() ? nullptr : &*at;
}

const Json& Fields::required(std::string_view key) {
  asked_.emplace_back(key);
  const Json* value = peek(key);
  if (value) return *value;
  std::vector<std::string> others;  // one of them may be this key, misspelt
  for (const auto& [other, ignored] : object_->items())
    if (std::find(asked_.begin(), asked_.end(), other) == asked_.end()) others.push_back(other);
  const std::string near = nearest(key, others);
  fail_at(key, "is missing",
          near.empty() ? "" : "; is '" + json_parse::shortened(near, 80) + "' meant for it?");
}

std::string Fields::joined(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

#define TESSERA_FIELD(T)                                     \
  template T Fields::get<T>(std::string_view, const Range&); \
  template T Fields::get<T>(std::string_view, T, const Range&);
TESSERA_FIELD(bool)
TESSERA_FIELD(int)
TESSERA_FIELD(int64_t)
TESSERA_FIELD(double)
TESSERA_FIELD(std::string)
TESSERA_FIELD(std::vector<bool>)
TESSERA_FIELD(std::vector<int64_t>)
TESSERA_FIELD(std::vector<double>)
TESSERA_FIELD(std::vector<std::string>)
#undef TESSERA_FIELD

}  // namespace tessera
