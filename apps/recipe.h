#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/io/json.h"

namespace tessera {

// A recipe that is part of the program: apps/recipes/NAME.json, embedded when it is built.
struct BuiltInRecipe {
  std::string_view name, text;
};

const std::vector<BuiltInRecipe>& built_in_recipes();

// The document of the built-in recipe of that name, or else of the file. Fails with the nearest known name.
Json read_recipe(const std::string& name_or_file);

// Sets the key at `path` ("optimizer.lr") of a config. Objects on the way are made; a model that is a
// preset's name becomes {"preset": NAME} first. Fails in the name of `option` where something on the way is
// no object.
void set_key(Json& config, std::string_view path, const Json& value, const std::string& option);

// The same from "path=value", as --set has it: the value is read as JSON, and is a string where it is none.
void set_key(Json& config, const std::string& assignment);

}  // namespace tessera
