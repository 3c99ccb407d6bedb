// tessera train: starts a run from a recipe, or resumes one.

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/options.h"
#include "apps/options/train_options.h"
#include "apps/ranks/alike.h"
#include "apps/ranks/run_on_ranks.h"
#include "apps/ranks/shared_data.h"
#include "apps/reporting/rate_finder.h"
#include "apps/reporting/run_report.h"
#include "apps/reporting/table.h"
#include "apps/training/interrupt.h"
#include "apps/training/recipe.h"
#include "apps/training/run_identity.h"
#include "apps/training/session.h"
#include "engine/check/gemm_peak.h"
#include "engine/core/parallel.h"
#include "engine/core/printable.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

// Options that change the config, so they are for a new run only.
const std::vector<std::string> run_options{
    "--recipe",     "--dataset", "--model", "--epochs",           "--batch",      "--lr",
    "--image-size", "--seed",    "--init",  "--resize-positions", "--fresh-head", "--tensorboard"};

ExitCode list() {
  fmt::print("{}", list_of_recipes());
  return ExitCode::done;
}

ExitCode print_config(const TrainOptions& options) {
  check(!options.given("--resume"), "train: --print-config is for a new run; RUN/config.json is a run's");
  print_json(to_json(train_config_of(options)));
  return ExitCode::done;
}

std::string base_name(const TrainOptions& options, const TrainConfig& config) {
  if (options.given("--recipe")) return fs::path(options.recipe).stem().string();
  return model_name(config) + "-" + config.data.name;
}

void introduce(const Trainer& trainer, const TrainConfig& config, const Dataset& dataset,
               const RunFolder& folder, const Computing& computing) {
  fmt::print("model  {}, {} parameters\n", model_name(config),
             as_metric(trainer.model().parameters.trainable_count()));
  if (!config.init.weights.empty()) fmt::print("init   {}\n", config.init.weights);
  fmt::print("data   {}: {} training and {} validation images, {} classes, {} x {} pixels\n",
             config.data.name, dataset.train->size(), dataset.validation->size(), dataset.classes(),
             dataset.image_shape[1], dataset.image_shape[2]);
  for (const std::string& note : dataset.notes) fmt::print("       {}\n", printable(note));
  if (computing.ranks) fmt::print("ranks  {}\n", describe_ranks(*computing.ranks, trainer, config.batch));
  if (trainer.data_on_device()) fmt::print("       kept and augmented on the GPU\n");
  fmt::print("run    {}: {} epochs of {} steps, {} images a step, {} threads, {}\n", folder.path().string(),
             trainer.epochs(), trainer.steps_in_epoch(), config.batch, threads(), name(computing.precision));
  const bool asked = computing.device == Device::cpu && computing.precision == Precision::f32;
  if (const std::string advice = bf16_advice(computing, asked ? bf16_speed() : 0); !advice.empty())
    fmt::print("       {}\n", advice);
  std::fflush(stdout);
}

void say_finished(const Trainer& trainer, const TrainConfig& config, const RunFolder& folder,
                  const TrainOptions& options) {
  const Position& at = trainer.position();
  const std::string run = folder.path().string();
  const Task task = task_of(config.model);
  if (at.best_epoch > 0)
    fmt::print("\nDone in {}: best {} {} (epoch {}), last {}. The run folder is {}\n",
               name(options.computing.precision), score_name(task), score_text(task, at.best_score),
               at.best_epoch, score_text(task, at.last_score), run);
  else
    fmt::print("\nDone, but no evaluation was finite, so there is no best. The run folder is {}\n", run);
  const Precision precision = options.computing.precision;
  fmt::print("Next:\n  tessera eval {}{}{}\n", run,
             config.data.dir.empty() ? "" : " --data " + config.data.dir,
             precision == Precision::f32 ? "" : fmt::format(" --precision {}", name(precision)));
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

// What the ranks must have alike. Those of a machine keep one copy of the pictures from then on.
void join_ranks(const TrainConfig& config, Dataset& dataset, const TrainOptions& options) {
  if (!options.computing.ranks) return;
  Ranks& ranks = *options.computing.ranks;
  expect_alike(ranks, options.computing);
  expect_alike(ranks, "config", identity_of(config).dump());
  expect_alike(ranks, "data set", digest_of(dataset));
  share_data(ranks, dataset);
}

bool writes(const TrainOptions& options) {
  return !options.computing.ranks || options.computing.ranks->is_first();
}

ExitCode train(Trainer& trainer, const TrainConfig& config, const Dataset& dataset, RunFolder& folder,
               const TrainOptions& options, const char* event) {
  const Ending ending = run_session(trainer, folder, options.stop, options.computing, event);
  if (!writes(options)) return ExitCode::done;
  if (ending != Ending::finished) return say_broken_off(ending, trainer, folder);
  const fs::path page = write_report(folder.path(), dataset, options.computing.device, trainer.best_pass());
  say_finished(trainer, config, folder, options);
  say_report(page);
  return ExitCode::done;
}

void check_find_lr(const TrainOptions& options) {
  check(options.find_lr || !options.json, "train: --json is for the table of --find-lr");
  check(!options.find_lr || !options.given("--resume"),
        "train: --find-lr begins with fresh weights, so there is nothing to --resume");
  check(!options.find_lr || !options.given("--stop-after"),
        "train: --find-lr ends by itself; leave --stop-after away");
  check(!options.find_lr || !options.computing.ranks, "train: --find-lr computes on one rank; start one");
}

ExitCode start(const TrainOptions& options) {
  check_find_lr(options);
  TrainConfig config = train_config_of(options);
  check_dataset_is_named(config);
  for (std::string* path : {&config.data.dir, &config.data.token_labels, &config.init.weights})
    if (!path->empty()) *path = fs::absolute(*path).lexically_normal().string();
  const std::string name = base_name(options, config) + (options.find_lr ? "-find-lr" : "");
  const fs::path out = options.given("--out") ? fs::path(options.out) : free_folder(fs::path("runs") / name);
  Dataset dataset = open_data(config.data, task_of(config.model));
  config.data.image_size = dataset.image_shape[1];
  TrainConfig shown = config;
  config.model = resolve_model(config.model, dataset);
  join_ranks(config, dataset, options);
  Trainer trainer(config, dataset, options.computing);
  if (options.find_lr) {
    find_lr(trainer, out, options.json);
    return ExitCode::done;
  }
  RunFolder folder =
      writes(options) ? RunFolder::create(out, to_json(config)) : RunFolder::of_another_process(out);
  trainer.share_state();
  introduce(trainer, shown, dataset, folder, options.computing);
  return train(trainer, config, dataset, folder, options, "start");
}

ExitCode resume(const TrainOptions& options) {
  check_find_lr(options);
  for (const std::string& option : run_options)
    check(!options.given(option), "train: ", option,
          " would change the run that --resume goes on with; only --data, --device, --threads, --stop-after "
          "and ",
          "--set of some keys go with it");
  const std::string path = options.resume.empty() ? options.out : options.resume;
  check(!path.empty(), "train: --resume which run? Give its folder");
  check(options.resume.empty() || !options.given("--out"), "train: --resume ", path,
        " goes on in its own folder; leave --out away");
  const bool first = writes(options);
  RunFolder folder = first ? RunFolder::open(path) : RunFolder::of_another_process(path);
  Json document = first ? read_json(folder.config()) : Json();
  if (Ranks* ranks = options.computing.ranks)
    document = parse_json(broadcast(*ranks, document.dump()), folder.config().string());
  std::vector<std::string> changed;
  for (const std::string& assignment : options.assignments) {
    change_key(document, assignment);
    changed.push_back(assignment.substr(0, assignment.find('=')));
  }
  TrainConfig config = read_train_config(document, folder.config().string());
  if (options.given("--data")) config.data.dir = options.data;
  Dataset dataset = open_data(config.data, task_of(config.model));
  config.model = resolve_model(config.model, dataset);
  if (!first || fs::exists(folder.state()) || fs::exists(folder.previous_state()))
    config.init = {};  // the state holds the weights; the file may be gone
  join_ranks(config, dataset, options);
  Trainer trainer(config, dataset, options.computing);
  if (first && !trainer.restore(folder, changed))
    fmt::print("{} has no saved state yet: the run begins anew\n", path);
  trainer.share_state();
  if (first && !changed.empty()) {
    write_json(folder.config(), document);
    folder.event("changed", {{"keys", options.assignments}});
  }
  if (trainer.finished()) {
    fmt::print("{} has finished all of its {} epochs\n", path, trainer.epochs());
    if (first && !fs::exists(folder.path() / "report.html"))
      say_report(write_report(folder.path(), dataset, options.computing.device));
    return ExitCode::done;
  }
  introduce(trainer, config, dataset, folder, options.computing);
  fmt::print("from   epoch {}, step {}\n", trainer.position().epoch + 1, trainer.position().step);
  return train(trainer, config, dataset, folder, options, "resume");
}

}  // namespace

void add_train(Command& app) {
  Command& command = add_command(
      app, "train", "Train a model, or go on with a run.",
      {"tessera train --recipe demo", "tessera train --recipe sl-vit-tiny-imagenet --data tiny-imagenet-200",
       "tessera train --recipe sl-vit-cifar10-quick --data DIR --out runs/cifar",
       "tessera train --dataset folder --data DIR --model vit --epochs 20 --set clip=1",
       "tessera train --dataset folder --data DIR --model vit.json --init vit.safetensors --fresh-head",
       "tessera train --recipe sl-vit-cifar10-quick --data DIR --find-lr",
       "tessera train --resume runs/cifar"});
  auto options = std::make_shared<TrainOptions>();
  add_train_options(command, *options);
  std::string recipes = "\nBuilt-in recipes, among those of --list-recipes:";
  for (const BuiltInRecipe& recipe : built_in_recipes()) {
    if (recipe.group != built_in_recipes().front().group) break;
    recipes += fmt::format("\n  {:<28}{}", recipe.name, recipe.about);
  }
  recipes +=
      "\n  MODEL-DATASET               a row of a paper's table: sl-vit-tiny-imagenet, sp-vit-s-imagenet";
  command.add_to_footer(
      "\n" + recipes +
      "\n\nlvvit-* and sp-vit-* learn from a teacher's maps of their training pictures, if they are given "
      "by\n"
      "  --set data.token_labels=DIR"
      "\nfor CLASS/NAME.JPEG DIR/CLASS/NAME.safetensors, with \"token_labels\" [2, T, h, w]: the T largest "
      "logits at "
      "each\nplace, and their classes."
      "\n\nCtrl-C, SIGTERM or SIGUSR1 ends the step, saves and leaves with 130, 143 or 138; Ctrl-C after one "
      "leaves\nat once. A step whose loss or gradient is not finite changes nothing; three in a row end the "
      "run.");
  on_run(command, [options] {
    if (options->list_recipes) return list();
    if (options->print_config) return print_config(*options);
    return run_on_ranks(options->given("--threads"), [&](Ranks* ranks) {
      options->computing.ranks = ranks;
      return options->given("--resume") ? resume(*options) : start(*options);
    });
  });
}

}  // namespace tessera
