#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/options.h"
#include "apps/reporting/table.h"
#include "apps/training/batch_choice.h"
#include "apps/training/footprint.h"
#include "apps/training/recipe.h"
#include "engine/core/error.h"
#include "models/model.h"
#include "models/presets.h"

namespace tessera {

namespace {

struct Options {
  int64_t image_size = 32, classes = 10;
  bool train_memory = false, json = false;
};

constexpr Column columns[] = {
    {"name", "preset"},
    {"parameters", "parameters", as_metric},
    {"macs", "MACs", as_metric},
    {"weight_bytes", "weights", as_bytes},
    {"activation_bytes", "activations", as_bytes},
};

constexpr Column memory_columns[] = {
    {"name", "recipe"},
    {"image_size", "pixels", as_integer},
    {"classes", "classes", as_integer},
    {"batch", "batch", as_integer},
    {"cpu_images", "at once on a CPU", as_integer},
    {"cpu_bytes", "memory", as_bytes},
    {"gpu_images", "at once on a GPU", as_integer},
    {"gpu_bytes", "memory", as_bytes},
};

// The cost of a preset, or the reason why it has no such size.
Json describe(const std::string& name, const Options& options) {
  Json row{{"name", name}};
  try {
    const Json config = preset(name, options.image_size, options.classes);
    const Cost cost = cost_of(config);
    const Footprint footprint = footprint_of(config);
    row.update({{"parameters", cost.parameters},
                {"macs", cost.macs},
                {"weight_bytes", footprint.weights},
                {"activation_bytes", footprint.activations}});
  } catch (const Error& error) {
    row["reason"] = error.what();
  }
  return row;
}

ExitCode list_models(const Options& options) {
  Json rows = Json::array();
  for (const std::string& name : preset_names()) rows.push_back(describe(name, options));
  if (options.json) {
    print_json(rows);
    return ExitCode::done;
  }
  fmt::print(
      "One image of {0} x {0} pixels, {1} classes; activations: f32, at the peak of a training step.\n\n",
      options.image_size, options.classes);
  print_table(columns, rows);
  std::string reasons;
  for (const Json& row : rows)
    if (row.contains("reason")) reasons += "\n" + row["reason"].get<std::string>();
  if (!reasons.empty()) fmt::print("{}\n", reasons);
  return ExitCode::done;
}

// What a step of the recipe takes where it says so or leaves it to us, by dry runs.
Json memory_of(const BuiltInRecipe& recipe) {
  TrainConfig config = read_train_config(recipe.document, "recipe " + recipe.name);
  const Dataset dataset = expected_data(config.data);
  config.model = resolve_model(config.model, dataset);
  Json row{{"name", recipe.name},
           {"image_size", dataset.image_shape[1]},
           {"classes", dataset.classes()},
           {"batch", config.batch}};
  for (const auto& [where, device] : {std::pair("cpu", Device::cpu), std::pair("gpu", Device::cuda)}) {
    row[std::string(where) + "_images"] = images_at_once(config, config.batch, device);
    row[std::string(where) + "_bytes"] = bytes_of_step(config, config.batch, device);
  }
  return row;
}

ExitCode list_memory(const Options& options) {
  Json rows = Json::array();
  for (const BuiltInRecipe& recipe : built_in_recipes()) rows.push_back(memory_of(recipe));
  if (!options.json)
    fmt::print(
        "A training step of every recipe in f32, by dry runs: weights, gradients, moments, activations, "
        "pictures ahead.\nThe images at once are the recipe's micro_batch; --set micro_batch=N lowers "
        "them.\n\n");
  print_rows(memory_columns, rows, options.json);
  return ExitCode::done;
}

}  // namespace

void add_models(Command& app) {
  Command& command =
      add_command(app, "models", "List the presets with parameters, multiply-accumulates and memory.",
                  {"tessera models", "tessera models --image-size 64 --classes 200 --json",
                   "tessera models --train-memory"});
  const auto options = std::make_shared<Options>();
  const auto size = [&](const char* name, int64_t& value, const char* what) {
    command.add_option(name, value, what)->check(positive())->capture_default_str()->type_name("N");
  };
  size("--image-size", options->image_size, "Pixels a side");
  size("--classes", options->classes, "Number of classes");
  command.add_flag("--train-memory", options->train_memory,
                   "List the recipes with the memory of a training step instead");
  add_json(command, options->json);
  on_run(command,
         [options] { return options->train_memory ? list_memory(*options) : list_models(*options); });
}

}  // namespace tessera
