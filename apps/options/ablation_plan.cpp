#include "apps/options/ablation_plan.h"

#include <algorithm>
#include <system_error>

#include "apps/options/validators.h"
#include "apps/training/config_checks.h"
#include "apps/training/recipe.h"
#include "data/registry.h"
#include "engine/core/error.h"
#include "engine/io/file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

// The folder has cells where any ablation has begun one there.
bool has_cells(const fs::path& folder) {
  return std::ranges::any_of(fs::recursive_directory_iterator(folder), [](const fs::directory_entry& entry) {
    return entry.path().filename() == "config.json";
  });
}

}  // namespace

Json Ablation::config(size_t choice, int64_t seed) const {
  Json document = base;
  for (size_t i = 0; i < switches.size(); ++i)
    set_key(document, switches[i].key, choices[choice][i], "--grid " + switches[i].key);
  document["seed"] = first_seed + seed;
  return document;
}

fs::path Ablation::folder(size_t choice, int64_t seed) const {
  return out / choice_folder(switches, choices[choice]) / ("seed-" + std::to_string(first_seed + seed));
}

void add_ablate_options(Command& command, AblateOptions& options) {
  options.command = &command;
  command
      .add_option("--recipe", options.recipe, "What all cells start from: a built-in recipe or a JSON file")
      ->required()
      ->type_name("NAME|FILE");
  command.add_option("--grid", options.grid, "A key of the config and its values; several make a grid")
      ->required()
      ->type_name("KEY=V,V...")
      ->allow_extra_args(false);
  command.add_option("--seeds", options.seeds, "Runs of each choice, their seeds one apart")
      ->check(between(1, 1000))
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--out", options.out, "The folder of all the runs and the table")
      ->required()
      ->type_name("DIR");
  command.add_option("--set", options.assignments, "Set any key of the config for all cells")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command.add_option("--dataset", options.dataset, "Data set, see tessera data")->type_name("NAME");
  command.add_option("--data", options.data, "The data set's folder")->type_name("DIR");
  command.add_option("--epochs", options.epochs, "How often to go through the training images")
      ->type_name("N");
  add_device(command, options.device);
  add_threads(command);
  add_json(command, options.json);
}

Ablation ablation_of(const AblateOptions& options) {
  Ablation a;
  a.base = read_recipe(options.recipe);
  check(a.base.is_object(), "recipe ", options.recipe, ": is not an object with the keys of a config.json");
  if (options.given("--dataset")) set_key(a.base, "data.name", options.dataset, "--dataset");
  if (options.given("--data"))
    set_key(a.base, "data.dir", fs::absolute(options.data).lexically_normal().string(), "--data");
  if (options.given("--epochs")) set_key(a.base, "epochs", options.epochs, "--epochs");
  for (const std::string& assignment : options.assignments) set_key(a.base, assignment);
  if (options.given("--data")) check_folder(read_train_config(a.base, "ablate").data.name, options.data);
  a.switches = read_switches(options.grid);
  a.choices = choices_of(a.switches);
  a.seeds = options.seeds;
  const Json seed = a.base.value("seed", Json(0));
  check(seed.is_number_integer(), "ablate: seed is ", seed.dump(), ", wanted an integer");
  a.first_seed = seed.get<int64_t>();
  a.out = options.out;
  return a;
}

void claim(const Ablation& a) {
  Json grid = Json::object();
  for (const Switch& s : a.switches) grid[s.key] = s.values;
  const Json document{{"base", a.base}, {"grid", grid}, {"seeds", a.seeds}};
  const fs::path file = a.out / "ablation.json";
  if (fs::exists(file)) {
    Json there = read_json(file);
    const bool same =
        there.is_object() && there.value("base", Json()) == a.base && there.value("grid", Json()) == grid;
    check(same || !has_cells(a.out), a.out.string(),
          ": holds another ablation (see ablation.json); go on with the command that began ",
          "it, or give another --out");
  }
  std::error_code error;
  fs::create_directories(a.out, error);
  check(!error, a.out.string(), ": the folder cannot be made: ", error.message());
  write_json(file, document);
}

}  // namespace tessera
