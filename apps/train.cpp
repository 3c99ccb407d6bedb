// tessera train: a run from a recipe, or one that goes on.

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/find_lr.h"
#include "apps/interrupt.h"
#include "apps/options.h"
#include "apps/recipe.h"
#include "apps/report.h"
#include "apps/run_report.h"
#include "apps/session.h"
#include "apps/subcommands.h"
#include "data/registry.h"
#include "engine/core/parallel.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

struct Options {
  CLI::App* command = nullptr;
  std::string recipe, dataset, data, model, init, out, resume;
  bool resize_positions = false, fresh_head = false;
  std::vector<std::string> assignments;
  int64_t epochs = 0, batch = 0, image_size = 0, seed = 0;
  double lr = 0;
  bool tensorboard = false;
  bool list_recipes = false, print_config = false;
  StopAfter stop;
  bool find_lr = false, json = false;
  Computing computing;

  bool given(const std::string& option) const { return command->get_option(option)->count() > 0; }
};

// What the command line changes in a recipe; a new run only.
const std::vector<std::string> run_options{
    "--recipe",     "--set",        "--dataset", "--model", "--epochs",           "--batch",
    "--lr",         "--image-size", "--seed",    "--init",  "--resize-positions", "--fresh-head",
    "--tensorboard"};

// "500" steps; "90s", "10m", "2h" of time.
StopAfter parse_stop(const std::string& text) {
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
  fail("train: --stop-after '", text, "' is neither a number of steps nor a time like 90s, 10m or 2h");
}

// A preset's name takes the place of the recipe's, whose own changes stay; a file's config takes all.
void set_model(Json& document, const std::string& model) {
  const bool changes_preset =
      document.contains("model") && document["model"].is_object() && !document["model"].contains("arch");
  if (model.ends_with(".json"))
    document["model"] = read_json(model);
  else if (changes_preset)
    document["model"]["preset"] = model;
  else
    document["model"] = model;
}

TrainConfig config_of(const Options& options) {
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
  set("--batch", "batch", options.batch);
  set("--lr", "optimizer.lr", options.lr);
  set("--seed", "seed", options.seed);
  set("--init", "init.weights", options.init);
  set("--resize-positions", "init.resize_positions", options.resize_positions);
  set("--fresh-head", "init.fresh_head", options.fresh_head);
  set("--tensorboard", "tensorboard", options.tensorboard);
  for (const std::string& assignment : options.assignments) set_key(document, assignment);
  return read_train_config(document, where);
}

void check_dataset_is_named(const TrainConfig& config) {
  std::string known;
  for (const std::string& name : dataset_names()) known += (known.empty() ? "" : ", ") + name;
  check(!config.data.name.empty(), "train: what on? Give --dataset NAME (", known,
        ") or --recipe NAME (demo, or one of --list-recipes)");
}

ExitCode list() {
  fmt::print("{}", list_of_recipes());
  return ExitCode::done;
}

ExitCode print_config(const Options& options) {
  check(!options.given("--resume"), "train: --print-config is for a new run; RUN/config.json is a run's");
  print_json(to_json(config_of(options)));
  return ExitCode::done;
}

std::string model_name(const TrainConfig& config) {
  return config.model.at(config.model.contains("preset") ? "preset" : "arch").get<std::string>();
}

std::string base_name(const Options& options, const TrainConfig& config) {
  if (options.given("--recipe")) return fs::path(options.recipe).stem().string();
  return model_name(config) + "-" + config.data.name;
}

void introduce(const Trainer& trainer, const TrainConfig& config, const Dataset& dataset,
               const RunFolder& folder) {
  fmt::print("model  {}, {} parameters\n", model_name(config),
             as_metric(trainer.model().parameters.trainable_count()));
  if (!config.init.weights.empty()) fmt::print("init   {}\n", config.init.weights);
  fmt::print("data   {}: {} training and {} validation images, {} classes, {} x {} pixels\n",
             config.data.name, dataset.train->size(), dataset.validation->size(), dataset.classes(),
             dataset.image_shape[1], dataset.image_shape[2]);
  for (const std::string& note : dataset.notes) fmt::print("       {}\n", note);
  fmt::print("run    {}: {} epochs of {} steps, {} images a step, {} threads\n", folder.path().string(),
             trainer.epochs(), trainer.steps_in_epoch(), config.batch, threads());
  std::fflush(stdout);
}

void say_finished(const Trainer& trainer, const TrainConfig& config, const RunFolder& folder,
                  const Options& options) {
  const Position& at = trainer.position();
  const std::string run = folder.path().string();
  const Task task = task_of(config.model);
  if (at.best_epoch > 0)
    fmt::print("\nDone: best {} {} (epoch {}), last {}. The run folder is {}\n", score_name(task),
               score_text(task, at.best_score), at.best_epoch, score_text(task, at.last_score), run);
  else
    fmt::print("\nDone, but no evaluation was finite, so there is no best. The run folder is {}\n", run);
  fmt::print("Next:\n  tessera eval {}{}\n", run,
             config.data.dir.empty() ? "" : " --data " + config.data.dir);
  if (task == Task::segment) return;
  if (task == Task::diffuse) return fmt::print("  tessera sample {} --out grid.png\n", run);
  fmt::print("  tessera predict {} IMAGE... --overlay overlays\n", run);
  if (options.given("--recipe") && !options.given("--model"))
    fmt::print("  tessera train --recipe {} --model vit{}   (a plain ViT, to compare)\n", options.recipe,
               config.data.dir.empty() ? "" : " --data " + config.data.dir);
}

ExitCode say_broken_off(Ending ending, const Trainer& trainer, const RunFolder& folder) {
  const Position& at = trainer.position();
  fmt::print("\nStopped in epoch {} after step {}; all is saved. Go on with\n  tessera train --resume {}\n",
             at.epoch + 1, at.step, folder.path().string());
  return ending == Ending::stopped ? ExitCode::done : static_cast<ExitCode>(128 + Interrupt::signal());
}

void say_report(const fs::path& page) { fmt::print("The report is {}\n", page.string()); }

ExitCode train(Trainer& trainer, const TrainConfig& config, const Dataset& dataset, RunFolder& folder,
               const Options& options, const char* event) {
  const Ending ending = run_session(trainer, folder, options.stop, options.computing.device, event);
  if (ending != Ending::finished) return say_broken_off(ending, trainer, folder);
  const fs::path page = write_report(folder.path(), dataset, options.computing.device);
  say_finished(trainer, config, folder, options);
  say_report(page);
  return ExitCode::done;
}

void check_find_lr(const Options& options) {
  check(options.find_lr || !options.json, "train: --json is for the table of --find-lr");
  check(!options.find_lr || !options.given("--resume"),
        "train: --find-lr begins with fresh weights, so there is nothing to --resume");
  check(!options.find_lr || !options.given("--stop-after"),
        "train: --find-lr ends by itself; leave --stop-after away");
}

ExitCode start(const Options& options) {
  check_find_lr(options);
  TrainConfig config = config_of(options);
  check_dataset_is_named(config);
  for (std::string* path : {&config.data.dir, &config.init.weights})
    if (!path->empty()) *path = fs::absolute(*path).lexically_normal().string();
  const std::string name = base_name(options, config) + (options.find_lr ? "-find-lr" : "");
  const fs::path out = options.given("--out") ? fs::path(options.out) : free_folder(fs::path("runs") / name);
  const Dataset dataset = open_data(config.data, task_of(config.model));
  config.data.image_size = dataset.image_shape[1];
  TrainConfig shown = config;
  config.model = resolve_model(config.model, dataset);
  Trainer trainer(config, dataset, options.computing);
  if (options.find_lr) return find_lr(trainer, out, options.json);
  RunFolder folder = RunFolder::create(out, to_json(config));
  introduce(trainer, shown, dataset, folder);
  return train(trainer, config, dataset, folder, options, "start");
}

ExitCode resume(const Options& options) {
  check_find_lr(options);
  for (const std::string& option : run_options)
    check(!options.given(option), "train: ", option,
          " would change the run that --resume goes on with; only --data, ",
          "--device, --threads and --stop-after go with it");
  const std::string path = options.resume.empty() ? options.out : options.resume;
  check(!path.empty(), "train: --resume which run? Give its folder");
  check(options.resume.empty() || !options.given("--out"), "train: --resume ", path,
        " goes on in its own folder; leave --out away");
  RunFolder folder = RunFolder::open(path);
  TrainConfig config = read_train_config(read_json(folder.config()), folder.config().string());
  if (options.given("--data")) config.data.dir = options.data;
  const Dataset dataset = open_data(config.data, task_of(config.model));
  config.model = resolve_model(config.model, dataset);
  if (fs::exists(folder.state())) config.init = {};  // the state holds the weights; the file may be gone
  Trainer trainer(config, dataset, options.computing);
  if (!trainer.restore(folder)) fmt::print("{} has no saved state yet: the run begins anew\n", path);
  if (trainer.finished()) {
    fmt::print("{} has finished all of its {} epochs\n", path, trainer.epochs());
    if (!fs::exists(folder.path() / "report.html"))
      say_report(write_report(folder.path(), dataset, options.computing.device));
    return ExitCode::done;
  }
  introduce(trainer, config, dataset, folder);
  fmt::print("from   epoch {}, step {}\n", trainer.position().epoch + 1, trainer.position().step);
  return train(trainer, config, dataset, folder, options, "resume");
}

void add_options(CLI::App& command, Options& o) {
  command.add_option("--recipe", o.recipe, "A built-in recipe or a JSON file, a run's config.json say")
      ->type_name("NAME|FILE");
  command.add_flag("--list-recipes", o.list_recipes, "Name the built-in recipes, by the papers' tables");
  command.add_flag("--print-config", o.print_config,
                   "Print the whole config that the other options make, and train nothing");
  command
      .add_option("--set", o.assignments,
                  "Set any key of the config, as in optimizer.lr=0.001; after all else")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command.add_option("--dataset", o.dataset, "Data set, see tessera data")->type_name("NAME");
  command.add_option("--data", o.data, "The data set's folder")->type_name("DIR");
  command.add_option("--model", o.model, "A preset (see tessera models) or a model's config (.json)")
      ->type_name("NAME");
  command.add_option("--init", o.init, "Begin with these weights: .safetensors, timm's too, or a run folder")
      ->type_name("FILE");
  command.add_flag("--resize-positions", o.resize_positions,
                   "Carry its position embeddings to the model's image size");
  command.add_flag("--fresh-head", o.fresh_head, "Leave its classifier out, for other classes");
  command.add_option("--epochs", o.epochs, "How often to go through the training images")->type_name("N");
  command.add_option("--batch", o.batch, "Images a step")->type_name("N");
  command.add_option("--lr", o.lr, "The learning rate after the warm-up")->type_name("X");
  command.add_option("--image-size", o.image_size, "Pixels a side; 0: the data set's own")->type_name("N");
  command.add_option("--out", o.out, "The run folder; otherwise a new one below runs/")->type_name("RUN");
  command.add_option("--resume", o.resume, "Go on with the run in this folder, exactly where it stopped")
      ->expected(0, 1)
      ->type_name("[RUN]");
  command
      .add_option_function<std::string>(
          "--stop-after", [&o](const std::string& text) { o.stop = parse_stop(text); },
          "Stop as Ctrl-C does after so many steps or so long: 500, 90s, 10m, 2h")
      ->type_name("N");
  command
      .add_option("--seed", o.seed, "Of weights, order and augmentation; the same seed gives the same bits")
      ->type_name("N");
  command.add_flag("--find-lr", o.find_lr,
                   "Train nothing, but try 100 steps of growing learning rates: a table, a suggestion, and "
                   "the curve in find-lr.html of --out");
  add_json(command, o.json);
  command.add_flag("--tensorboard", o.tensorboard, "Write TensorBoard's event files into the run folder too");
  add_device(command, o.computing.device);
  add_precision(command, o.computing.precision);
  command.add_flag("!--no-graph", o.computing.graph,
                   "On a GPU: launch every kernel of a step, do not replay a recorded one");
  add_threads(command);
}

}  // namespace

void add_train(CLI::App& app) {
  CLI::App& command = add_command(
      app, "train", "Train a model, or go on with a run.",
      {"tessera train --recipe demo", "tessera train --recipe sl-vit-tiny-imagenet --data tiny-imagenet-200",
       "tessera train --recipe sl-vit-cifar10-quick --data DIR --out runs/cifar",
       "tessera train --dataset folder --data DIR --model vit --epochs 20 --set clip=1",
       "tessera train --dataset folder --data DIR --model vit.json --init vit.safetensors --fresh-head",
       "tessera train --recipe sl-vit-cifar10-quick --data DIR --find-lr",
       "tessera train --resume runs/cifar"});
  auto options = std::make_shared<Options>();
  options->command = &command;
  add_options(command, *options);
  std::string recipes = "\nBuilt-in recipes, among those of --list-recipes:";
  for (const BuiltInRecipe& recipe : built_in_recipes()) {
    if (recipe.group != built_in_recipes().front().group) break;
    recipes += fmt::format("\n  {:<28}{}", recipe.name, recipe.about);
  }
  recipes +=
      "\n  MODEL-DATASET               a row of a paper's table: sl-vit-tiny-imagenet, sp-vit-s-imagenet";
  command.footer(
      command.get_footer() + "\n" + recipes +
      "\n\nCtrl-C, SIGTERM or SIGUSR1 ends the step, saves and leaves with 130, 143 or 138; Ctrl-C after one "
      "leaves\nat once. A step whose loss or gradient is not finite changes nothing; three in a row end the "
      "run.");
  on_run(command, [options] {
    if (options->list_recipes) return list();
    if (options->print_config) return print_config(*options);
    return options->given("--resume") ? resume(*options) : start(*options);
  });
}

}  // namespace tessera
