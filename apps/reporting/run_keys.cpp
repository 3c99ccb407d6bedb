#include "apps/reporting/run_keys.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tessera {

void flatten(const Json& value, const std::string& path, ConfigKeys& to) {
  if (!value.is_object()) {
    to.emplace_back(path, value.is_string() ? value.get<std::string>()
                                            : value.dump(-1, ' ', false, Json::error_handler_t::replace));
    return;
  }
  for (const auto& [key, inner] : value.items()) flatten(inner, path.empty() ? key : path + "." + key, to);
}

const std::string* find(const ConfigKeys& keys, const std::string& key) {
  const auto found = std::ranges::find(keys, key, [](const auto& each) { return each.first; });
  return found == keys.end() ? nullptr : &found->second;
}

std::vector<std::string> differing_keys(std::span<const ConfigKeys> runs) {
  std::vector<std::string> order, differing;
  for (const ConfigKeys& keys : runs)
    for (const auto& [key, value] : keys)
      if (std::ranges::find(order, key) == order.end()) order.push_back(key);
  for (const std::string& key : order) {
    const std::string* const first = find(runs.front(), key);
    const auto is_other = [&](const ConfigKeys& keys) {
      const std::string* const value = find(keys, key);
      return (value == nullptr) != (first == nullptr) || (value && *value != *first);
    };
    if (std::ranges::any_of(runs, is_other)) differing.push_back(key);
  }
  return differing;
}

}  // namespace tessera
