#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/io/json.h"

namespace tessera {

// The files of apps/recipes/, embedded when the program is built: NAME.json.
struct RecipeFile {
  std::string_view name, text;
};
const std::vector<RecipeFile>& recipe_files();

// A recipe that is part of the program. A file of apps/recipes/ holds one, which has the file's name; or a
// table of a paper, whose every row on every data set is one, named MODEL-DATASET:
//
//   {"about": "what table this is",
//    "base": what all have in common, as in a config.json,
//    "datasets": {NAME: {"about": "CIFAR-10", "config": what is special about it}},
//    "models":   {NAME: {"about": "SL-ViT", "top1": {DATASET: the paper's percentage}, "config": likewise}}}
//
// A row takes `base`, then the data set's and the model's changes (as a JSON merge patch); without a "model"
// in these, the preset of the row's name.
struct BuiltInRecipe {
  std::string name, group, about;
  Json document;
};

// Group by group, the single ones first.
const std::vector<BuiltInRecipe>& built_in_recipes();

// They as lines of text, for a person.
std::string list_of_recipes();

// The document of the built-in recipe of that name, or else of the file. Fails with the nearest known name.
Json read_recipe(const std::string& name_or_file);

// Sets the key at `path` ("optimizer.lr") of a config. Objects on the way are made; a model that is a
// preset's name becomes {"preset": NAME} first. Fails in the name of `option` where something on the way is
// no object.
void set_key(Json& config, std::string_view path, const Json& value, const std::string& option);

// The same from "path=value", as --set has it: the value is read as JSON, and is a string where it is none.
void set_key(Json& config, const std::string& assignment);

}  // namespace tessera
