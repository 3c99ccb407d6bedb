#pragma once

// JSON documents, and configs read from them. <nlohmann/json.hpp> itself is needed only where values are
// made or walked.

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/error.h"

namespace tessera {

using Json = nlohmann::ordered_json;  // objects keep the order of their keys

// The document in `text`. Errors name `where` (a file, say), the line and the column: bad syntax, numbers
// beyond double, a key given twice in an object, more than 100 levels.
Json parse_json(std::string_view text, const std::string& where);
Json read_json(const std::filesystem::path& path);

// The document with two spaces a level and a last line end, by write_file_atomically. NaN and infinity,
// which JSON does not have, become null.
void write_json(const std::filesystem::path& path, const Json& document);

// What a number of a config may be.
class Range {
 public:
  Range() = default;  // any
  static Range at_least(double min) { return Range(min, infinity, false); }
  static Range at_most(double max) { return Range(-infinity, max, false); }
  static Range between(double min, double max) { return Range(min, max, false); }  // both included
  static Range above(double min) { return Range(min, infinity, true); }            // min excluded
  bool holds(double value) const { return (open_ ? value > min_ : value >= min_) && value <= max_; }
  std::string text() const;  // "of at least 1"

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  Range(double min, double max, bool open) : min_(min), max_(max), open_(open) {}

  double min_ = -infinity, max_ = infinity;
  bool open_ = false;
};

// Reads one object of a config:
//
//   Fields f(json, "vit.json");
//   config.heads = f.get<int64_t>("heads", Range::at_least(1));   // required
//   config.ratio = f.get("mlp_ratio", 2.0);                       // 2 where it is left out or null
//   config.scale = f.choice("scale", {"fixed", "learned"}, "fixed");
//   f.done();                                                     // refuses every key not asked for
//
// Errors name `where`, the key with the objects that it is in, what came and what was wanted:
// "vit.json: attention.heads is "eight", wanted an integer". The Json must outlive the Fields.
class Fields {
 public:
  // Fails unless `object` is one. `path` leads to it inside of `where`: "attention".
  Fields(const Json& object, std::string where, std::string path = "");

  // The value of `key`. T: bool, int, int64_t, double (integers are taken), std::string, or a std::vector of
  // these but int. Numbers must lie in `range`, in a list each. Without a fallback the key is required.
  template <class T> T get(std::string_view key, const Range& range = {});
  template <class T> T get(std::string_view key, T fallback, const Range& range = {});
  std::string get(std::string_view key, const char* fallback);

  // A string that must be one of `choices`.
  std::string choice(std::string_view key, std::initializer_list<const char*> choices);
  std::string choice(std::string_view key, std::initializer_list<const char*> choices, const char* fallback);

  Fields object(std::string_view key);                      // a required sub-object
  std::optional<Fields> find_object(std::string_view key);  // nothing where it is left out or null
  std::vector<Fields> objects(std::string_view key);        // a list of objects; empty where left out

  // The value as it is, for what is read elsewhere; null pointer where it is left out or null.
  const Json* find(std::string_view key);
  bool has(std::string_view key) const;      // present and not null; does not count as asking for it
  bool is_list(std::string_view key) const;  // likewise

  // Fails with the nearest known name for the first key that was never asked for.
  void done() const;

  // Fails with "where: path.key ...", as errors of this class do.
  template <class... Parts> [[noreturn]] void fail_at(std::string_view key, const Parts&... parts) const {
    fail(where_, ": ", joined(key), " ", parts...);
  }

  const std::string& where() const { return where_; }
  const std::string& path() const { return path_; }

 private:
  const Json* peek(std::string_view key) const;
  const Json& required(std::string_view key);
  std::string joined(std::string_view key) const;  // "attention.heads"

  const Json* object_;
  std::string where_, path_;
  std::vector<std::string> asked_;
};

}  // namespace tessera
