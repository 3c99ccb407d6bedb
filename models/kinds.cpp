#include "models/kinds.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tessera {

namespace {

bool has(const std::vector<std::string>& keys, const std::string& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

void change(Json& config, const Json& changes) {
  for (const auto& [key, value] : changes.items()) {
    if (value.is_null()) {
      config.erase(key);
      continue;
    }
    if (!value.is_object()) {
      config[key] = value;
      continue;
    }
    Json& object = config[key];
    if (!object.is_object()) object = Json::object();
    const KindKeys* kinds = kinds_of(key);
    if (kinds && value.contains("kind")) set_kind(object, value.at("kind"), *kinds);
    change(object, value);
  }
}

}  // namespace

void set_kind(Json& object, const Json& kind, const KindKeys& keys) {
  const Json former = object.value("kind", Json());
  object["kind"] = kind;
  if (former == kind || !kind.is_string() || !keys.contains(kind.get<std::string>())) return;
  const std::vector<std::string>& own = keys.at(kind.get<std::string>());
  for (const auto& [other, of_other] : keys)
    for (const std::string& key : of_other)
      if (!has(own, key)) object.erase(key);
}

const KindKeys* kinds_of(const std::string& object) {
  static const std::map<std::string, KindKeys> all{
      {"tokenizer", {{"patch", {"stride", "post_norm"}}, {"shifted", {"directions", "ratio"}}}},
      {"pool", {{"conv", {}}, {"merge", {}}, {"shifted", {"directions", "ratio"}}}},
      {"decay",
       {{"fixed", {"initial", "range"}},
        {"distance", {"alpha"}},
        {"content", {"alpha", "distance", "start"}}}}};
  const auto found = all.find(object);
  return found == all.end() ? nullptr : &found->second;
}

Json changed(Json config, const Json& changes) {
  change(config, changes);
  return config;
}

}  // namespace tessera
