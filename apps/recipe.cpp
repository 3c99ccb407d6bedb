#include "apps/recipe.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"

namespace tessera {

Json read_recipe(const std::string& name_or_file) {
  std::vector<std::string> names;
  for (const auto& [name, text] : built_in_recipes()) {
    if (name == name_or_file) return parse_json(text, "recipe " + name_or_file);
    names.emplace_back(name);
  }
  if (std::filesystem::exists(name_or_file)) return read_json(name_or_file);
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  fail("recipe '", name_or_file, "' is neither built in (", known, ") nor a file",
       did_you_mean(name_or_file, names));
}

void set_key(Json& config, std::string_view path, const Json& value, const std::string& option) {
  Json* at = &config;
  for (size_t dot; (dot = path.find('.')) != path.npos; path.remove_prefix(dot + 1)) {
    const std::string key(path.substr(0, dot));
    const bool model = at == &config && key == "model";
    at = &(*at)[key];
    if (model && at->is_string()) *at = Json{{"preset", *at}};
    check(at->is_null() || at->is_object(), option, ": ", key, " is ", at->dump(),
          ", not an object with keys");
  }
  (*at)[std::string(path)] = value;
}

void set_key(Json& config, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  check(equals != std::string::npos && equals > 0, "--set '", assignment,
        "': wanted key=value, as in optimizer.lr=0.001");
  const std::string text = assignment.substr(equals + 1);
  const Json value = Json::parse(text, nullptr, false);
  set_key(config, std::string_view(assignment).substr(0, equals), value.is_discarded() ? Json(text) : value,
          "--set " + assignment);
}

}  // namespace tessera
