#include "apps/training/recipe.h"

#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/registry.h"
#include "engine/core/error.h"
#include "models/kinds.h"

namespace tessera {

namespace {

constexpr const char* single = "For a CPU and an hour or less";

// A "model" replaces the former one whole: a null in it is not a removal here but a change to its preset.
void change(Json& document, const Json& entry) {
  const Json config = entry.value("config", Json::object());
  document.merge_patch(config);
  if (config.contains("model")) document["model"] = config["model"];
}

BuiltInRecipe row_of(const Json& table, const std::string& model, const std::string& dataset) {
  const Json &of_model = table.at("models").at(model), &of_dataset = table.at("datasets").at(dataset);
  BuiltInRecipe row{model + "-" + dataset, table.at("about"), of_model.at("about"), Json::object()};
  row.about += " on " + of_dataset.at("about").get<std::string>();
  if (of_model.contains("top1") && of_model["top1"].contains(dataset))
    row.about += fmt::format("; the paper: {:.2f} %", of_model["top1"][dataset].get<double>());
  if (of_model.contains("fid"))
    row.about += fmt::format("; the paper's FID: {:.2f}", of_model["fid"].get<double>());
  row.document["about"] = row.about;
  row.document["model"] = model;
  row.document.update(table.at("base"));
  change(row.document, of_dataset);
  change(row.document, of_model);
  return row;
}

// The kinds of a config's object of that name; a null pointer for one without them.
const KindKeys* kinds_at(const std::string& object) {
  static const KindKeys optimizers{{"adamw", {"betas", "eps"}}, {"sgd", {"momentum", "nesterov"}}};
  return object == "optimizer" ? &optimizers : kinds_of(object);
}

// Sets the data set's name and removes the keys that mean nothing for it: those of a recipe of another set.
void set_dataset(Json& data, const Json& name) {
  data["name"] = name;
  for (const DatasetEntry& entry : datasets()) {
    if (entry.name != name) continue;
    const auto keep = [&](bool has, const char* key) {
      if (!has) data.erase(key);
    };
    keep(entry.coarse_classes > 0, "coarse_labels");
    keep(entry.takes_validation_fraction, "validation_fraction");
    keep(entry.takes_test_fit, "test_crop");
    keep(entry.takes_test_fit, "test_filter");
    keep(entry.has_latents, "latent_scale");
  }
}

std::vector<BuiltInRecipe> read_built_in_recipes() {
  std::vector<BuiltInRecipe> singles, rows;
  for (const auto& [name, text] : recipe_files()) {
    Json document = parse_json(text, "recipe " + std::string(name));
    if (!document.contains("models")) {
      const std::string about = document.value("about", "");
      singles.push_back({std::string(name), single, about, std::move(document)});
      continue;
    }
    for (const auto& model : document.at("models").items())
      for (const auto& dataset : document.at("datasets").items())
        rows.push_back(row_of(document, model.key(), dataset.key()));
  }
  singles.insert(singles.end(), rows.begin(), rows.end());
  return singles;
}

}  // namespace

const std::vector<BuiltInRecipe>& built_in_recipes() {
  static const std::vector<BuiltInRecipe> recipes = read_built_in_recipes();
  return recipes;
}

std::string list_of_recipes() {
  std::string text, group;
  for (const BuiltInRecipe& recipe : built_in_recipes()) {
    if (recipe.group != group) text += fmt::format("{}{}\n", text.empty() ? "" : "\n", recipe.group);
    group = recipe.group;
    text += fmt::format("  {:<32}{}\n", recipe.name, recipe.about);
  }
  return text;
}

Json read_recipe(const std::string& name_or_file) {
  std::vector<std::string> names;
  for (const BuiltInRecipe& recipe : built_in_recipes()) {
    if (recipe.name == name_or_file) return recipe.document;
    names.push_back(recipe.name);
  }
  if (std::filesystem::exists(name_or_file)) return read_json(name_or_file);
  fail("recipe '", name_or_file, "' is neither built in (tessera train --list-recipes) nor a file",
       did_you_mean(name_or_file, names));
}

void set_key(Json& config, std::string_view path, const Json& value, const std::string& option) {
  Json* at = &config;
  std::string object;
  for (size_t dot; (dot = path.find('.')) != std::string_view::npos; path.remove_prefix(dot + 1)) {
    const std::string key(path.substr(0, dot));
    const bool model = at == &config && key == "model";
    object = key;
    at = &(*at)[key];
    if (model && at->is_string()) *at = Json{{"preset", *at}};
    // nlohmann::json turns a null that is indexed into an object before it has memory for one, and would
    // crash in its destructor if there is none.
    if (at->is_null()) *at = Json::object();
    check(at->is_object(), option, ": ", key, " is ", at->dump(), ", not an object with keys");
  }
  const KindKeys* kinds = path == "kind" ? kinds_at(object) : nullptr;
  if (kinds)
    set_kind(*at, value, *kinds);
  else if (path == "name" && object == "data")
    set_dataset(*at, value);
  else
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
