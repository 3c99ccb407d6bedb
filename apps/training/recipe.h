#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/io/json.h"

namespace tessera {

/// The files of apps/recipes/, embedded in the library when it is built; `name` is that of NAME.json.
struct RecipeFile {
  std::string_view name, text;
};
const std::vector<RecipeFile>& recipe_files();

/// A recipe that is part of the library. A file of apps/recipes/ holds one recipe of the file's name, or a
/// table of a paper, in which each model on each data set is a recipe, named MODEL-DATASET:
///
///   {"about": "what table this is",
///    "base": what all have in common, as in a config.json,
///    "datasets": {NAME: {"about": "CIFAR-10", "config": what is special about it}},
///    "models":   {NAME: {"about": "SL-ViT", "top1": {DATASET: the paper's percentage}, "config": likewise}}}
///
/// A diffusion model has the paper's "fid" in place of "top1". A row of SL-ViT's table 2 has its other
/// columns in "table2", which `tessera bench table` shows.
///
/// Such a recipe is `base` with the changes of the data set and then of the model, each a JSON merge patch.
/// Its model is the preset of the model's name, unless a "config" holds another "model".
struct BuiltInRecipe {
  std::string name, group, about;
  Json document;
};

/// All of them by group; first those with a file of their own.
const std::vector<BuiltInRecipe>& built_in_recipes();

/// The list of them as text for the terminal.
std::string list_of_recipes();

/// The document of the built-in recipe of that name, or of the file at that path. Fails with the nearest
/// known name if there is neither.
Json read_recipe(const std::string& name_or_file);

/// Sets the key at `path` ("optimizer.lr") of a config. Objects on the way are made; a model that is a
/// preset's name becomes {"preset": NAME} first. Fails in the name of `option` where something on the way is
/// no object. Another "kind" of an object removes the keys of the former kind, "data.name" those that the
/// data set does not have.
void set_key(Json& config, std::string_view path, const Json& value, const std::string& option);

/// Sets the key of "path=value", as --set has it. The value is read as JSON, or taken as a string if it is
/// not JSON.
void set_key(Json& config, const std::string& assignment);

}  // namespace tessera
