#include "apps/training/run_identity.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/training/recipe.h"
#include "engine/core/error.h"

namespace tessera {

namespace {

void compare(const Json& saved, const Json& now, const std::string& path, std::vector<std::string>& to) {
  if (saved == now) return;
  if (!saved.is_object() || !now.is_object()) {
    to.push_back(path + " is " + now.dump() + ", the state was saved with " + saved.dump());
    return;
  }
  const auto inner = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  for (const auto& [key, value] : saved.items())
    compare(value, now.contains(key) ? now[key] : Json(), inner(key), to);
  for (const auto& [key, value] : now.items())
    if (!saved.contains(key)) compare(Json(), value, inner(key), to);
}

}  // namespace

Json identity_of(const TrainConfig& config) {
  Json identity = to_json(config);
  for (const char* key : {"about", "preset", "patience", "init", "tensorboard", "checkpoint", "watch"})
    identity.erase(key);
  for (const char* key : {"dir", "token_labels", "on_device"}) identity["data"].erase(key);
  return identity;
}

std::vector<std::string> differences(const Json& saved, const Json& now) {
  std::vector<std::string> found;
  compare(saved, now, "", found);
  return found;
}

const std::vector<std::string>& changeable_keys() {
  static const std::vector<std::string> keys{"epochs", "steps", "optimizer.lr", "eval_every", "patience"};
  return keys;
}

std::string assigned_key(const std::string& assignment) { return assignment.substr(0, assignment.find('=')); }

void change_key(Json& config, const std::string& assignment) {
  const std::string key = assigned_key(assignment);
  std::string known;
  for (const std::string& each : changeable_keys()) known += (known.empty() ? "" : ", ") + each;
  const bool changeable = std::ranges::find(changeable_keys(), key) != changeable_keys().end();
  check(changeable, "train: --set ", key, " would make it another run; --resume goes on with the same one, ",
        "and changes ", known, " alone", did_you_mean(key, changeable_keys()));
  set_key(config, assignment);
}

}  // namespace tessera
