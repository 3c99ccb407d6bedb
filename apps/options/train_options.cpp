#include "apps/options/train_options.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/training/recipe.h"
#include "data/registry.h"
#include "engine/core/error.h"
#include "models/presets.h"

namespace tessera {

namespace {

// "500" steps; "90s", "10m", "2h" of time. `option` names the option that wants it.
StopAfter parse_stop(const std::string& text, const std::string& option) {
  size_t used = 0;
  double number = 0;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
  }
  const std::string unit = text.substr(used);
  const double seconds = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (std::isfinite(number) && number > 0 && seconds > 0) return {.seconds = number * seconds};
  if (unit.empty() && number >= 1 && number < 1e15 && number == std::floor(number))
    return {.steps = static_cast<int64_t>(number)};
  fail("train: ", option, " '", text, "' is neither a number of steps nor a time like 90s, 10m or 2h");
}

double parse_time(const std::string& text) {
  const StopAfter time = parse_stop(text, "--time");
  check(time.steps == 0, "train: --time ", text, ": of what? Give 90s, 10m or 2h; --stop-after and --set ",
        "steps=N take steps");
  return time.seconds;
}

int64_t whole_number(const std::string& text, const std::string& option) {
  int64_t number = 0;
  if (text.empty()) return number;  // it was not given
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  check(read.ec != std::errc::result_out_of_range, "train: ", option, " ", text, " is out of range");
  check(read.ec == std::errc() && read.ptr == end, "train: ", option, " ", text,
        ": wanted a whole number, or auto");
  return number;
}

// The model of a config file: the whole, or what a training run's config has under "model".
Json model_in(const std::string& file) {
  Json config = read_json(file);
  return config.is_object() && config.contains("model") ? config["model"] : config;
}

// Fails for a run's folder and for a checkpoint, which hold weights. A preset's name is one beside a folder
// of that name too.
void expect_no_weights(const std::string& model) {
  const std::filesystem::path path(model);
  std::error_code unseen;
  const bool folder = !is_preset(model) && std::filesystem::is_directory(path, unseen);
  if (!folder && path.extension() != ".safetensors") return;
  const std::filesystem::path config = (folder ? path : path.parent_path()) / "config.json";
  fail("train: --model ", model, " is a ", folder ? "folder" : "checkpoint",
       ", and a model is a preset or a config (.json)",
       std::filesystem::exists(config, unseen)
           ? "; --model " + config.string() + " --init " + model + " trains its model on from its weights"
           : "");
}

// A preset's name takes the place of the recipe's, whose own changes stay; a file's config takes all.
void set_model(Json& document, const std::string& model) {
  expect_no_weights(model);
  document.erase("preset");
  document.erase("about");  // it is of the model that was there before
  const bool changes_preset =
      document.contains("model") && document["model"].is_object() && !document["model"].contains("arch");
  if (model.ends_with(".json"))
    document["model"] = model_in(model);
  else if (changes_preset)
    document["model"]["preset"] = model;
  else
    document["model"] = model;
}

// The text that --help shows after the examples.
std::string train_footer() {
  std::string recipes = "\nBuilt-in recipes, among those of --list-recipes:";
  for (const BuiltInRecipe& recipe : built_in_recipes()) {
    if (recipe.group != built_in_recipes().front().group) break;
    recipes += fmt::format("\n  {:<28}{}", recipe.name, recipe.about);
  }
  recipes +=
      "\n  MODEL-DATASET               a row of a paper's table: sl-vit-tiny-imagenet, sp-vit-s-imagenet";
  return "\n" + recipes +
         "\n\nlvvit-* and sp-vit-* learn from a teacher's maps of their training pictures, if they are given "
         "by"
         "\n  --set data.token_labels=DIR"
         "\nfor CLASS/NAME.JPEG DIR/CLASS/NAME.safetensors, with \"token_labels\" [2, T, h, w]: the T "
         "largest "
         "logits at each"
         "\nplace, and their classes."
         "\n\nCtrl-C, SIGTERM or SIGUSR1 ends the step, saves and leaves with 130, 143 or 138; Ctrl-C after "
         "one "
         "leaves"
         "\nat once. --json prints the run's events, a line of JSON each. --time fits the run to the speed "
         "that "
         "is seen;"
         "\nits steps are in config.json, so a plain --resume goes on to the same end, without regard to the "
         "clock. A step whose loss or gradient is not finite changes nothing; three in a row end the run.";
}

}  // namespace

TrainConfig train_config_of(const TrainOptions& options) {
  const bool from_recipe = options.given("--recipe");
  const std::string where = from_recipe ? "recipe " + options.recipe : "train";
  Json document = from_recipe ? read_recipe(options.recipe) : Json::object();
  check(document.is_object(), where, ": is ", document.type_name(),
        ", wanted an object with the keys of a config.json");
  if (options.given("--model")) set_model(document, options.model);
  const auto set = [&](const std::string& option, const char* key, const Json& value) {
    if (options.given(option)) set_key(document, key, value, option);
  };
  set("--dataset", "data.name", options.dataset);
  set("--data", "data.dir", options.data);
  set("--image-size", "data.image_size", options.image_size);
  set("--epochs", "epochs", options.epochs);
  if (!options.automatic_batch()) set("--batch", "batch", whole_number(options.batch, "--batch"));
  set("--patience", "patience", options.patience);
  set("--lr", "optimizer.lr", options.lr);
  set("--seed", "seed", options.seed);
  set("--init", "init.weights", options.init);
  set("--resize-positions", "init.resize_positions", options.resize_positions);
  set("--fresh-head", "init.fresh_head", options.fresh_head);
  set("--tensorboard", "tensorboard", options.tensorboard);
  for (const std::string& assignment : options.assignments) set_key(document, assignment);
  TrainConfig config = read_train_config(document, where);
  if (!config.data.name.empty()) check_folder(config.data.name, config.data.dir);
  check(!options.given("--epochs") || config.steps == 0, where, ": ends after `steps`, ", config.steps,
        ", however many epochs these are; give --set steps=N, or --set steps=0 beside --epochs");
  return config;
}

void check_dataset_is_named(const TrainConfig& config) {
  std::string known;
  for (const std::string& name : dataset_names()) known += (known.empty() ? "" : ", ") + name;
  check(!config.data.name.empty(), "data: which set? Give --dataset NAME (", known,
        ") or --recipe NAME (demo, or one of --list-recipes)");
}

void add_config_options(Command& command, TrainOptions& o) {
  o.command = &command;
  command.add_option("--recipe", o.recipe, "A built-in recipe or a JSON file, a run's config.json say")
      ->type_name("NAME|FILE");
  command
      .add_option("--set", o.assignments,
                  "Set any key of the config, as in optimizer.lr=0.001; after all else")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command.add_option("--dataset", o.dataset, "Data set, see tessera data")->type_name("NAME");
  command.add_option("--data", o.data, "The data set's folder")->type_name("DIR");
  command.add_option("--model", o.model, "A preset (see tessera models) or a model's config (.json)")
      ->type_name("NAME");
  command
      .add_option("--batch", o.batch,
                  "Images a step; auto (of train): the largest power of two that the free memory takes")
      ->type_name("N|auto");
  command.add_option("--image-size", o.image_size, "Pixels a side; 0: the data set's own")->type_name("N");
  command
      .add_option("--seed", o.seed, "Of weights, order and augmentation; the same seed gives the same bits")
      ->type_name("N");
}

void add_computing_options(Command& command, Computing& computing) {
  add_device(command, computing.device);
  add_precision(command, computing.precision);
  command.add_flag("!--no-graph", computing.graph,
                   "On a GPU: launch every kernel of a step, do not replay a recorded one");
  add_threads(command);
}

void add_train_options(Command& command, TrainOptions& o) {
  add_config_options(command, o);
  command.add_flag("--list-recipes", o.list_recipes, "Name the built-in recipes, by the papers' tables");
  command.add_flag("--print-config", o.print_config,
                   "Print the whole config that the other options make, and train nothing");
  command.add_option("--init", o.init, "Begin with these weights: .safetensors, timm's too, or a run folder")
      ->type_name("FILE");
  command.add_flag("--resize-positions", o.resize_positions,
                   "Carry its position embeddings to the model's image size");
  command.add_flag("--fresh-head", o.fresh_head, "Leave its classifier out, for other classes");
  command.add_option("--epochs", o.epochs, "How often to go through the training images")->type_name("N");
  command.add_option("--lr", o.lr, "The learning rate after the warm-up")->type_name("X");
  command.add_option("--out", o.out, "The run folder; otherwise a new one below runs/")->type_name("RUN");
  command.add_option("--resume", o.resume, "Go on with the run in this folder, exactly where it stopped")
      ->expected(0, 1)
      ->type_name("[RUN]");
  command
      .add_option(
          "--stop-after", [&o](const std::string& text) { o.stop = parse_stop(text, "--stop-after"); },
          "Stop as Ctrl-C does after so many steps or so long: 500, 90s, 10m, 2h")
      ->type_name("N");
  command
      .add_option(
          "--time", [&o](const std::string& text) { o.budget = parse_time(text); },
          "Be done in 90s, 10m or 2h, with a decayed learning rate: as many steps as fit, from the measured "
          "speed; with --resume, from now on. The clock decides, so a second run may differ in its bits")
      ->type_name("T");
  command
      .add_option("--patience", o.patience,
                  "End after N evaluations in a row without a better score; 0: never")
      ->check(non_negative())
      ->type_name("N");
  command.add_option("--note", o.note, "Write a line about the run into its notes.txt; see tessera runs")
      ->type_name("TEXT");
  command.add_flag(
      "--dry-run", o.dry_run,
      "Do every phase once (data, step, evaluation, checkpoint, report, resume), say how long the "
      "run would take, and leave nothing behind");
  command.add_flag("--overfit-batch", o.overfit,
                   "Train on one batch alone, without augmentation, until the model knows it by heart; exit "
                   "code 1 if it cannot. Leaves nothing behind");
  Option* quiet = command.add_flag("--quiet", o.quiet, "Print warnings and the end alone");
  command.add_flag("--verbose", o.verbose, "Print a line for every step, and more about every epoch")
      ->excludes(quiet);
  command.add_flag("--find-lr", o.find_lr,
                   "Train nothing, but try 100 steps of growing learning rates: a table, a suggestion, and "
                   "the curve in find-lr.html of --out");
  add_json(command, o.json);
  command.add_flag("--tensorboard", o.tensorboard, "Write TensorBoard's event files into the run folder too");
  add_computing_options(command, o.computing);
  command.add_to_footer(train_footer());
}

}  // namespace tessera
