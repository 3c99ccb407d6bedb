// tessera sample: images that a diffusion model draws, a row a class.

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "apps/commands/commands.h"
#include "apps/options/options.h"
#include "apps/reporting/sample_grid.h"
#include "engine/core/error.h"
#include "engine/core/printable.h"
#include "models/diffusion.h"

namespace tessera {

namespace {

struct Options {
  std::string checkpoint, classes, sampler = "ddim", out;
  int64_t count = 8, steps = 0;
  std::optional<double> guidance;
  uint64_t seed = 0;
  Device device = Device::cpu;
};

constexpr int64_t default_steps = 50;   // default, at most the length of the model's chain
constexpr int64_t largest_count = 100;  // images a class

// The class with this name or number.
int64_t class_of(const std::string& word, const std::vector<std::string>& names) {
  if (const auto found = std::find(names.begin(), names.end(), word); found != names.end())
    return found - names.begin();
  const bool number =
      !word.empty() && word.size() < 10 && word.find_first_not_of("0123456789") == std::string::npos;
  check(number, "sample: --classes: there is no class '", word, "'", did_you_mean(word, names));
  const int64_t k = std::stoll(word);
  check(k < std::ssize(names), "sample: --classes: there is no class ", k, "; they are numbered 0 to ",
        names.size() - 1);
  return k;
}

// The class of each row.
std::vector<int64_t> rows_of(const Options& options, const std::vector<std::string>& names) {
  if (options.classes.empty()) return default_classes(names);
  std::vector<int64_t> rows;
  std::istringstream words(options.classes);
  for (std::string word; std::getline(words, word, ',');) rows.push_back(class_of(word, names));
  return rows;
}

SampleOptions sample_options(const Options& options, const Model& model) {
  SampleOptions how = default_sampling(model, default_steps);
  if (options.sampler == "ddpm") how.sampler = DiffusionSampler::ddpm;
  if (options.steps > 0) how.steps = options.steps;
  if (options.guidance) how.guidance = *options.guidance;
  return how;
}

ExitCode run(const Options& options) {
  check(options.out.ends_with(".png"), "sample: --out ", options.out, ": wanted a name that ends in .png");
  const Checkpoint checkpoint = read_checkpoint(options.checkpoint, options.device);
  const std::vector<std::string>& names = checkpoint.data.class_names;
  const SampleGrid grid{rows_of(options, names), options.count, options.seed};
  const SampleOptions how = sample_options(options, checkpoint.model);
  write_png(options.out, draw_sample_grid(checkpoint, grid, how, options.device, "sample"));
  fmt::print("{} images in {}, {} a class, by {} in {} steps; from the top:\n",
             std::ssize(grid.classes) * options.count, options.out, options.count, options.sampler,
             how.steps);
  for (const int64_t k : grid.classes) fmt::print("  {}\n", printable(names[static_cast<size_t>(k)]));
  return ExitCode::done;
}

}  // namespace

void add_sample(Command& app) {
  Command& command = add_command(
      app, "sample", "Draw images with a diffusion model.",
      {"tessera sample runs/dit --out grid.png",
       "tessera sample runs/dit --classes cat,dog,7 --count 4 --guidance 3 --sampler ddpm --steps 250"
       " --out grid.png"});
  auto options = std::make_shared<Options>();
  command.add_option("checkpoint", options->checkpoint, "A checkpoint, or a run folder (its best one)")
      ->required();
  command
      .add_option("--classes", options->classes,
                  "Names or numbers with commas between; a row each. Otherwise the first ten")
      ->type_name("LIST");
  command.add_option("--count", options->count, "Images a class")
      ->check(between(1, largest_count))
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--steps", options->steps, "Of the model's chain, evenly spaced; otherwise 50, or all")
      ->check(between(2, 1000000))
      ->type_name("N");
  command
      .add_option("--guidance", options->guidance,
                  "Away from the image of no class: 1 not at all, more is clearer and less varied; otherwise"
                  " 1.5, or 1 for a model that knows no such image")
      ->check(between(0, 100))
      ->type_name("X");
  command.add_option("--sampler", options->sampler, "ddim, or ddpm, which draws noise in every step")
      ->check(one_of({"ddim", "ddpm"}))
      ->capture_default_str()
      ->type_name("NAME");
  add_seed(command, options->seed);
  command.add_option("--out", options->out, "The picture that is written")->required()->type_name("FILE.png");
  add_device(command, options->device);
  add_threads(command);
  on_run(command, [options] { return run(*options); });
}

}  // namespace tessera
