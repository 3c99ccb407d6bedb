#include "apps/training/config_keys.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/training/config.h"
#include "apps/training/config_meanings.h"
#include "engine/core/dispatch.h"
#include "engine/core/error.h"
#include "engine/io/field_record.h"
#include "models/architectures.h"
#include "models/kinds.h"
#include "models/model.h"
#include "models/presets.h"

namespace tessera {

namespace {

std::string list_of(const std::vector<std::string>& words, const char* last) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 < words.size() ? ", " : last) + words[i];
  return text;
}

std::string values_of(const FieldNote& note) {
  return note.choices.empty() ? note.type : list_of(note.choices, " or ");
}

// "0.003" without the quotes of a string; "" of an empty one, which means none.
std::string fallback_of(const FieldNote& note) {
  const Json value = Json::parse(note.fallback, nullptr, false);
  return value.is_string() ? value.get<std::string>() : note.fallback;
}

// Reads a whole config in which every object is there, once with each kind of optimizer.
std::vector<FieldNote> notes_of_training() {
  FieldRecord record;
  Json document = to_json(TrainConfig());
  const Json none = Json::object();
  for (const char* key : {"resized_crop", "scene_crop", "photometric", "randaugment"})
    document["augment"][key] = none;
  document["init"]["weights"] = "file";
  for (const char* kind : {"adamw", "sgd"}) {
    document["optimizer"] = {{"kind", kind},
                             {"groups", {{{"pattern", "*"}, {"weight_decay", 0}}, {{"dimensions", 1}}}}};
    read_train_config(document, "config");
  }
  return record.notes();
}

// The configs of an architecture that have the objects which its presets leave out.
std::vector<Json> variants(const Architecture& row) {
  std::vector<Json> changes{Json::object()};
  for (const char* kind : {"patch", "shifted"}) changes.push_back({{"tokenizer", {{"kind", kind}}}});
  changes.push_back({{"tokenizer", {{"directions", "all"}}}});
  changes.push_back({{"pool", {{"kind", "shifted"}}}});
  changes.push_back({{"attention", {{"mask_fill", "zero"}}}});
  changes.push_back({{"aux", {{"level", 2}, {"channels", 16}}}});
  changes.push_back({{"attention", {{"prior", {{"sharing", "head"}}}}}});
  for (const char* kind : {"fixed", "distance", "content"})
    changes.push_back({{"attention", {{"decay", {{"kind", kind}}}}}});
  changes.push_back({{"attention", {{"decay", {{"kind", "content"}, {"start", "rmt"}}}}}});
  std::vector<Json> configs;
  for (const Json& change : changes) configs.push_back(changed(preset(row.presets.front(), 64, 10), change));
  return configs;
}

// Builds small models of the architecture, without numbers. One that refuses its config has been read too.
std::vector<FieldNote> notes_of(const Architecture& row) {
  const DryRun dry;
  FieldRecord record;
  for (const Json& config : variants(row)) {
    try {
      build(config);
    } catch (const Error&) {
    }
  }
  std::vector<FieldNote> own;
  for (const FieldNote& note : record.notes())
    if (note.where == row.name && note.path != "arch") own.push_back(note);
  return own;
}

// Lists the values that a key has, each with its architectures: "2 (vit, pit); 3 (lvvit)", or "2" if all have
// it.
std::string joined(const std::vector<std::pair<std::string, std::vector<std::string>>>& by_value) {
  if (by_value.size() <= 1) return by_value.empty() ? "" : by_value.front().first;
  std::string text;
  for (const auto& [value, architectures] : by_value)
    text += (text.empty() ? "" : "; ") + value + " (" + list_of(architectures, ", ") + ")";
  return text;
}

class ByValue {
 public:
  void add(const std::string& value, const std::string& architecture) {
    for (auto& [known, of] : values_)
      if (known == value) return of.push_back(architecture);
    values_.push_back({value, {architecture}});
  }
  std::string text() const { return joined(values_); }

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> values_;
};

void add_model_keys(std::vector<ConfigKey>& keys) {
  struct Entry {
    ByValue values, fallbacks;
    std::vector<std::string> architectures;
  };
  std::vector<std::string> order;
  std::map<std::string, Entry> entries;
  for (const Architecture& row : architectures())
    for (const FieldNote& note : notes_of(row)) {
      const std::string path = "model." + note.path;
      if (!entries.contains(path)) order.push_back(path);
      Entry& entry = entries[path];
      if (!values_of(note).empty()) entry.values.add(values_of(note), row.name);
      if (!fallback_of(note).empty()) entry.fallbacks.add(fallback_of(note), row.name);
      entry.architectures.push_back(row.name);
    }
  for (const std::string& path : order) {
    const Entry& entry = entries[path];
    keys.push_back({path, entry.values.text(), entry.fallbacks.text(), "", entry.architectures});
  }
}

// Brings the keys of an object together, in the order of their first; a model's own keys come before its
// objects'.
void sort_by_object(std::vector<ConfigKey>& keys) {
  const auto object_of = [](const std::string& path) {
    const size_t from = path.starts_with("model.") ? 6 : 0;
    const size_t end = path.find_first_of(".[", from);
    return end == std::string::npos ? (from ? "model" : path) : path.substr(0, end);
  };
  std::map<std::string, size_t> place;
  for (const ConfigKey& key : keys) place.try_emplace(object_of(key.path), place.size());
  std::stable_sort(keys.begin(), keys.end(), [&](const ConfigKey& a, const ConfigKey& b) {
    return place.at(object_of(a.path)) < place.at(object_of(b.path));
  });
}

void add_meanings(std::vector<ConfigKey>& keys, std::span<const ConfigMeaning> meanings) {
  for (const ConfigMeaning& meaning : meanings)
    for (ConfigKey& key : keys) {
      if (key.path != meaning.path) continue;
      key.meaning = meaning.meaning;
      if (meaning.values) key.values = meaning.values;
      if (meaning.fallback) key.fallback = meaning.fallback;
    }
}

}  // namespace

std::vector<ConfigKey> all_config_keys() {
  std::vector<ConfigKey> keys, models;
  for (const FieldNote& note : notes_of_training())
    if (note.where == "config") keys.push_back({note.path, values_of(note), fallback_of(note), "", {}});
  add_model_keys(models);
  sort_by_object(keys);
  sort_by_object(models);
  keys.insert(keys.end(), models.begin(), models.end());
  add_meanings(keys, meanings_of_training());
  add_meanings(keys, meanings_of_models());
  return keys;
}

std::vector<ConfigKey> config_keys() {
  std::vector<ConfigKey> keys = all_config_keys();
  std::erase_if(keys, [](const ConfigKey& key) { return key.meaning.empty(); });
  return keys;
}

}  // namespace tessera
