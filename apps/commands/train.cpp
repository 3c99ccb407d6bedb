// tessera train: starts a run from a recipe, or resumes one.

#include <fmt/core.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/commands/commands.h"
#include "apps/options/options.h"
#include "apps/options/train_messages.h"
#include "apps/options/train_options.h"
#include "apps/options/train_plan.h"
#include "apps/ranks/alike.h"
#include "apps/ranks/run_on_ranks.h"
#include "apps/ranks/shared_data.h"
#include "apps/reporting/measuring.h"
#include "apps/reporting/rate_finder.h"
#include "apps/reporting/rehearsal.h"
#include "apps/reporting/run_record.h"
#include "apps/reporting/run_report.h"
#include "apps/reporting/table.h"
#include "apps/training/config_checks.h"
#include "apps/training/interrupt.h"
#include "apps/training/recipe.h"
#include "apps/training/run_identity.h"
#include "apps/training/saved_state.h"
#include "apps/training/session.h"
#include "data/file_look.h"
#include "data/registry.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

ExitCode list(bool json) {
  if (!json) {
    fmt::print("{}", list_of_recipes());
    return ExitCode::done;
  }
  Json rows = Json::array();
  for (const BuiltInRecipe& recipe : built_in_recipes())
    rows.push_back({{"recipe", recipe.name}, {"group", recipe.group}, {"about", recipe.about}});
  print_json(rows);
  return ExitCode::done;
}

Verbosity verbosity_of(const TrainOptions& options) {
  return options.quiet || options.json ? Verbosity::quiet
         : options.verbose             ? Verbosity::verbose
                                       : Verbosity::normal;
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

// Empty where the run reads no maps.
std::string digest_of_maps(const TrainConfig& config, const Dataset& dataset) {
  if (config.data.token_labels.empty()) return "";
  return digest_of(TokenLabels(config.data.token_labels, dataset), dataset.train->size());
}

// Ranks that differ in any of these would compute different models. Those of a machine keep one copy of the
// pictures from then on.
void join_ranks(const TrainConfig& config, Dataset& dataset, const TrainOptions& options) {
  if (!options.computing.ranks) return;
  Ranks& ranks = *options.computing.ranks;
  expect_alike(ranks, options.computing);
  expect_alike(ranks, "config", common_part_of(config));
  expect_alike(ranks, "data set", digest_of(dataset));
  expect_alike(ranks, "teacher's maps (data.token_labels)", digest_of_maps(config, dataset));
  share_data(ranks, dataset);
}

bool writes(const TrainOptions& options) {
  return !options.computing.ranks || options.computing.ranks->is_first();
}

// A damaged picture is told before the first step, not by the epoch that comes to it.
void look_at_files(Dataset& dataset, const TrainOptions& options) {
  constexpr double most_seconds = 10;
  if (!writes(options)) return;
  if (const std::string note = expect_intact_files(dataset, most_seconds); !note.empty())
    dataset.notes.push_back(note);
}

std::string ranks_of(const TrainOptions& options, const Trainer& trainer, int64_t batch) {
  Ranks* const ranks = options.computing.ranks;
  return ranks == nullptr ? "" : describe_ranks(*ranks, trainer, batch);
}

ExitCode train(Trainer& trainer, const TrainConfig& config, const Dataset& dataset, RunFolder& folder,
               const TrainOptions& options, const char* event, const StopAfter& stop) {
  trainer.set_verbosity(verbosity_of(options));
  if (writes(options) && !options.note.empty()) add_note(folder.path(), options.note);
  const Ending ending = run_session(trainer, folder, stop, options.computing, event);
  if (!writes(options)) return ExitCode::done;
  if (ending != Ending::finished) {
    say_broken_off(trainer, folder);
    check_printed(folder);
    return ending == Ending::stopped ? ExitCode::done : static_cast<ExitCode>(128 + Interrupt::signal());
  }
  const fs::path page = write_report(folder.path(), dataset, options.computing.device, trainer.best_pass());
  say_finished(trainer, config, folder, options);
  if (!options.quiet) say_report(page);
  check_printed(folder);
  return ExitCode::done;
}

void say_doubts(const TrainConfig& config, const TrainOptions& options) {
  if (!writes(options)) return;
  for (const std::string& doubt : doubts_about(config)) fmt::print(stderr, "warning: train: {}\n", doubt);
}

ExitCode start(const TrainOptions& options) {
  check_kind_of_run(options);
  TrainConfig config = train_config_of(options);
  check_dataset_is_named(config);
  for (std::string* path : {&config.data.dir, &config.data.token_labels, &config.init.weights})
    if (!path->empty()) *path = fs::absolute(*path).lexically_normal().string();
  const std::string name = base_name(options, config) + (options.find_lr ? "-find-lr" : "");
  const fs::path out = options.given("--out") ? fs::path(options.out) : free_folder(fs::path("runs") / name);
  if (options.overfit) config = single_batch_config(config);
  const Stopwatch since_start;
  Dataset dataset = open_data(config.data, task_of(config.model));
  look_at_files(dataset, options);
  const double opened = since_start.seconds();
  config.data.image_size = dataset.image_shape[1];
  if (config.model.contains("preset")) config.preset = config.model.at("preset").get<std::string>();
  config.model = resolve_model(config.model, dataset);
  join_ranks(config, dataset, options);
  if (Ranks* const ranks = options.computing.ranks)
    expect_alike(*ranks, "start (--init)", config.init.weights.empty() ? "random" : "given");
  if (options.automatic_batch()) choose_batch_for(config, dataset, options);
  if (options.overfit)
    return overfit_batch(config, dataset, options.computing, options.json) ? ExitCode::done
                                                                           : ExitCode::check_failed;
  say_doubts(config, options);
  if (options.dry_run) {
    dry_run(config, dataset, options.computing, opened, options.json);
    return ExitCode::done;
  }
  const StopAfter stop = fit_to_budget(config, dataset, options, since_start);
  Trainer trainer(config, dataset, options.computing);
  if (options.find_lr) {
    find_lr(trainer, options.json && !options.given("--out") ? fs::path() : out, options.json);
    return ExitCode::done;
  }
  RunFolder folder =
      writes(options) ? RunFolder::create(out, to_json(config)) : RunFolder::of_another_process(out);
  const EventLines lines(folder, options.json && writes(options));
  trainer.share_state();
  if (!options.quiet && !options.json)
    introduce(trainer, config, dataset, folder, options.computing, ranks_of(options, trainer, config.batch));
  return train(trainer, config, dataset, folder, options, "start", stop);
}

// The state that the run goes on from, of the first rank; and its precision for all of them, where the
// command names none.
std::optional<TensorFile> take_up(RunFolder& folder, TrainOptions& options) {
  const auto saved = writes(options) ? read_saved_state(folder) : std::nullopt;
  Computing& computing = options.computing;
  if (options.given("--precision")) return saved;
  if (writes(options)) {
    const auto before = saved ? saved_precision(*saved) : std::nullopt;
    computing.precision = before ? *before : precision_of(read_run(folder.path()));
  }
  if (computing.ranks)
    computing.precision = precision_of(broadcast(*computing.ranks, std::string(name(computing.precision))));
  return saved;
}

void begin_anew(RunFolder& folder) {
  folder.keep_rows(0);
  fmt::print("{} has no saved state yet: the run begins anew\n", folder.path().string());
}

// Begins the trainer where the run stands. Keys of which the run itself says that they were changed, or is
// told so now, may differ from those that the state was saved with.
void restore(Trainer& trainer, RunFolder& folder, std::optional<TensorFile> saved,
             const ConfigChange& change) {
  if (!saved) return begin_anew(folder);
  std::vector<std::string> free_keys = keys_changed_on_the_way(read_run(folder.path()));
  for (const std::string& assignment : change.assignments) free_keys.push_back(assigned_key(assignment));
  trainer.restore(folder, *saved, free_keys);
}

// The event comes first: whoever ends the process between the two, the state is still that of the run.
void write_change(RunFolder& folder, const ConfigChange& change) {
  if (change.assignments.empty()) return;
  folder.event("changed", {{"keys", change.assignments}});
  write_json(folder.config(), change.config);
}

// A run that has ended is left as it is, but for a report that is missing and a note that was given.
void leave_finished(const Trainer& trainer, const TrainConfig& config, const Dataset& dataset,
                    const RunFolder& folder, const TrainOptions& options) {
  if (!options.note.empty()) add_note(folder.path(), options.note);
  say_finished_before(trainer, config, folder);
  if (!fs::exists(folder.path() / "report.html"))
    say_report(write_report(folder.path(), dataset, options.computing.device));
}

ExitCode resume(TrainOptions options) {
  const Stopwatch since_start;
  check_resumable(options);
  const std::string path = options.resume.empty() ? options.out : options.resume;
  check(!path.empty(), "train: --resume which run? Give its folder");
  check(options.resume.empty() || !options.given("--out"), "train: --resume ", path,
        " goes on in its own folder; leave --out away");
  const bool first = writes(options);
  RunFolder folder = first ? RunFolder::open(path) : RunFolder::of_another_process(path);
  const EventLines lines(folder, options.json && first);
  Json document = first ? read_json(folder.config()) : Json();
  if (Ranks* ranks = options.computing.ranks)
    document = parse_json(broadcast(*ranks, document.dump()), folder.config().string());
  std::optional<TensorFile> saved = take_up(folder, options);
  const ConfigChange change = change_of(options, document);
  TrainConfig config = read_train_config(change.config, folder.config().string());
  if (options.given("--data")) check_folder(config.data.name, config.data.dir = options.data);
  Dataset dataset = open_data(config.data, task_of(config.model));
  look_at_files(dataset, options);
  config.model = resolve_model(config.model, dataset);
  if (!first || saved) config.init = {};  // the state holds the weights; the file may be gone
  join_ranks(config, dataset, options);
  Trainer trainer(config, dataset, options.computing);
  if (first) restore(trainer, folder, std::exchange(saved, std::nullopt), change);
  trainer.share_state();
  if (trainer.finished()) {
    check_left_to_train(trainer, config, folder, change);
    if (first) leave_finished(trainer, config, dataset, folder, options);
    lines.print({{"event", "finished"}, {"epoch", trainer.position().epoch}, {"step", 0}});
    return ExitCode::done;
  }
  if (first) write_change(folder, change);
  if (!options.quiet && !options.json) {
    introduce(trainer, config, dataset, folder, options.computing, ranks_of(options, trainer, config.batch));
    fmt::print("from   epoch {}, step {}\n", trainer.position().epoch + 1, trainer.position().step);
  }
  StopAfter stop = options.stop;
  if (options.budget > 0) stop.budget = left_of_budget(options, since_start);
  return train(trainer, config, dataset, folder, options, "resume", stop);
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
       "tessera train --recipe sl-vit-cifar10-quick --data DIR --time 2h --batch auto",
       "tessera train --recipe sl-vit-cifar10-quick --data DIR --dry-run",
       "tessera train --resume runs/cifar", "tessera train --resume runs/cifar --epochs 200"});
  auto options = std::make_shared<TrainOptions>();
  add_train_options(command, *options);
  on_run(command, [options] {
    std::signal(SIGPIPE, SIG_IGN);  // a run goes on where nobody reads its output any more
    if (options->list_recipes) return list(options->json);
    if (options->print_config) return print_config(*options);
    return run_on_ranks(options->given("--threads"), [&](Ranks* ranks) {
      options->computing.ranks = ranks;
      return options->given("--resume") ? resume(*options) : start(*options);
    });
  });
}

}  // namespace tessera
