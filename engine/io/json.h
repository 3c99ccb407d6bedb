#pragma once

// JSON documents, and configs that are read from them. Include <nlohmann/json.hpp> where values are made or
// walked; this header does without it.

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

using Json = nlohmann::ordered_json;  ///< objects keep the order of their keys

/// Parses `text`. Fails for bad syntax, numbers beyond double, a key that is given twice in an object, and
/// more than 100 levels; the error names `where` (such as a file), line and column.
Json parse_json(std::string_view text, const std::string& where);
Json read_json(const std::filesystem::path& path);

/// Writes the document by write_file_atomically(), indented by two spaces a level, with a final newline. NaN
/// and infinity, which JSON does not have, become null.
void write_json(const std::filesystem::path& path, const Json& document);

/// The document without those members of its objects that are null: to a config they say what a key that is
/// left out says (see Fields).
Json without_nulls(const Json& document);

/// The values that a number of a config may have.
class Range {
 public:
  Range() = default;  ///< any value
  static Range at_least(double min) { return Range(min, infinity, false); }
  static Range at_most(double max) { return Range(-infinity, max, false); }
  static Range between(double min, double max) { return Range(min, max, false); }  ///< includes both
  static Range above(double min) { return Range(min, infinity, true); }            ///< excludes min
  bool holds(double value) const { return (open_ ? value > min_ : value >= min_) && value <= max_; }
  std::string text() const;  ///< "of at least 1"

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  Range(double min, double max, bool open) : min_(min), max_(max), open_(open) {}

  double min_ = -infinity, max_ = infinity;
  bool open_ = false;
};

/// Reads one object of a config:
///
///   Fields f(json, "vit.json");
///   config.heads = f.get<int64_t>("heads", Range::at_least(1));   // required
///   config.ratio = f.get("mlp_ratio", 2.0);                       // 2 where it is left out or null
///   config.scale = f.choice("scale", {"fixed", "learned"}, "fixed");
///   f.done();                                                     // refuses every key not asked for
///
/// Errors name `where`, the key with the objects around it, what came and what was wanted:
/// "vit.json: attention.heads is "eight", wanted an integer". The Json must outlive the Fields.
class Fields {
 public:
  /// `path` is the way to the object inside of `where`, such as "attention". Fails if `object` is no object.
  Fields(const Json& object, std::string where, std::string path = "");

  /// The value of `key`. T is bool, int, int64_t, double (integers are accepted), std::string, or a
  /// std::vector of one of these except int. A number, and each number of a list, must lie in `range`.
  /// Without a fallback the key is required.
  template <class T> T get(std::string_view key, const Range& range = {});
  template <class T> T get(std::string_view key, T fallback, const Range& range = {});
  std::string get(std::string_view key, const char* fallback);

  /// A string that must be one of `choices`.
  std::string choice(std::string_view key, std::initializer_list<const char*> choices);
  std::string choice(std::string_view key, std::initializer_list<const char*> choices, const char* fallback);

  Fields object(std::string_view key);                      ///< a required sub-object
  std::optional<Fields> find_object(std::string_view key);  ///< nothing where it is left out or null
  std::vector<Fields> objects(std::string_view key);        ///< a list of objects; empty where left out

  /// The JSON value itself, to be read elsewhere; a null pointer where it is left out or null.
  const Json* find(std::string_view key);
  /// Whether the key is present and not null.
  bool has(std::string_view key);
  /// Whether the key is a list. done() does not count this as asking.
  bool is_list(std::string_view key) const;

  /// Fails for the first key that was never asked for, and suggests the nearest known name.
  void done() const;

  /// Throws an Error "where: path.key parts...", the form of this class's errors.
  template <class... Parts> [[noreturn]] void fail_at(std::string_view key, const Parts&... parts) const {
    fail(where_, ": ", joined(key), " ", parts...);
  }

  const std::string& where() const { return where_; }
  const std::string& path() const { return path_; }

 private:
  const Json* peek(std::string_view key) const;
  const Json& required(std::string_view key);
  std::string joined(std::string_view key) const;  ///< "attention.heads"

  const Json* object_;
  std::string where_, path_;
  std::vector<std::string> asked_;
};

}  // namespace tessera
