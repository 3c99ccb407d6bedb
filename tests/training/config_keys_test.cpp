#include "apps/training/config_keys.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "apps/training/config.h"
#include "apps/training/config_meanings.h"
#include "engine/io/field_record.h"

using namespace tessera;

namespace {

const ConfigKey& find(const std::vector<ConfigKey>& keys, const std::string& path) {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const ConfigKey& k) { return k.path == path; });
  REQUIRE_MESSAGE(found != keys.end(), path);
  return *found;
}

bool has_child(const std::vector<ConfigKey>& keys, const std::string& path) {
  return std::any_of(keys.begin(), keys.end(), [&](const ConfigKey& k) {
    return k.path.starts_with(path + ".") || k.path.starts_with(path + "[");
  });
}

// "optimizer.lr" of {"optimizer": {"lr": ...}}, for each value of a config.
void add_paths(const Json& value, const std::string& path, std::set<std::string>& paths) {
  for (const auto& [key, inner] : value.items()) {
    const std::string own = path.empty() ? key : path + "." + key;
    if (inner.is_object() && own != "model")
      add_paths(inner, own, paths);
    else
      paths.insert(own);
  }
}

}  // namespace

TEST_CASE("every key of a config has a meaning, and every meaning a key") {
  const std::vector<ConfigKey> all = all_config_keys();
  CHECK(all.size() > 150);
  std::set<std::string> paths;
  for (const ConfigKey& key : all) {
    CAPTURE(key.path);
    CHECK(paths.insert(key.path).second);
    CHECK(!key.values.empty());
    const bool object = key.values.starts_with("an object") || key.values == "a list of objects";
    if (key.path == "model.backbone") continue;  // its keys are those of its own architecture
    if (object)
      CHECK_MESSAGE(has_child(all, key.path),
                    "the keys below it were not read: give config_keys.cpp a config with it");
    else
      CHECK_MESSAGE(!key.meaning.empty(),
                    "write its meaning into apps/training/config_meanings.cpp or model_meanings.cpp");
  }
  for (const auto& meanings : {meanings_of_training(), meanings_of_models()})
    for (const ConfigMeaning& meaning : meanings)
      CHECK_MESSAGE(paths.contains(meaning.path), meaning.path << " is no key any more");
}

TEST_CASE("the list of keys has every key that a config prints") {
  std::set<std::string> printed, listed;
  add_paths(to_json(TrainConfig()), "", printed);
  for (const ConfigKey& key : config_keys()) listed.insert(key.path);
  for (const std::string& path : printed) CHECK_MESSAGE(listed.contains(path), path);
}

TEST_CASE("types, ranges, choices and defaults are the readers'") {
  const std::vector<ConfigKey> keys = config_keys();
  CHECK(find(keys, "batch").values == "an integer from 1 to 1000000");
  CHECK(find(keys, "batch").fallback == "128");
  CHECK(find(keys, "optimizer.kind").values == "adamw or sgd");
  CHECK(find(keys, "optimizer.groups[].lr_scale").fallback == "1.0");
  CHECK(find(keys, "data.cache_mb").values == "an integer from 0 to 1048576");
  const ConfigKey& pool = find(keys, "model.pool.kind");
  CHECK(pool.values == "conv or shifted (pit); merge or shifted (swin)");
  CHECK(pool.architectures == std::vector<std::string>{"pit", "swin"});
  CHECK(find(keys, "model.attention.heads").fallback.empty());
  CHECK(find(keys, "model.window").fallback == "4");
}

// A default that depends on other keys would be shown as one number; two configs tell such keys.
TEST_CASE("defaults that other keys decide are written down as words") {
  const auto fallbacks = [](const Json& document) {
    FieldRecord record;
    read_train_config(document, "config");
    std::map<std::string, std::string> all;
    for (const FieldNote& note : record.notes()) all[note.path] = note.fallback;
    return all;
  };
  const Json objects{
      {"schedule", Json::object()}, {"optimizer", Json::object()}, {"augment", Json::object()}};
  Json other = objects;
  other.update({{"epochs", 20}, {"batch", 64}, {"seed", 3}});
  other["schedule"] = {{"min_lr", 1e-5}};
  other["optimizer"] = {{"lr", 0.1}};
  const auto a = fallbacks(objects), b = fallbacks(other);
  std::set<std::string> computed;
  for (const auto& [path, fallback] : a)
    if (b.at(path) != fallback) computed.insert(path);
  CHECK(computed == std::set<std::string>{"schedule.warmup_epochs", "schedule.warmup_lr"});
  for (const std::string& path : computed) CHECK(find(config_keys(), path).fallback != a.at(path));
}
