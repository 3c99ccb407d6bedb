// tessera sample: images that a diffusion model draws, as a sheet with a row a class or as arrays in a file.

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "apps/commands/commands.h"
#include "apps/options/options.h"
#include "apps/options/output_file.h"
#include "apps/reporting/sample_file.h"
#include "apps/reporting/sample_grid.h"
#include "apps/training/progress.h"
#include "engine/core/error.h"
#include "engine/core/printable.h"
#include "models/diffusion.h"

namespace tessera {

namespace {

struct Options {
  std::string checkpoint, classes, sampler = "ddim", format, out;
  int64_t count = 8, batch = 32, steps = 0;
  std::optional<double> guidance;
  uint64_t seed = 0;
  Device device = Device::cpu;
};

constexpr int64_t default_steps = 50;  // default, at most the length of the model's chain
constexpr int64_t largest_row = 100;   // images a class on a sheet
constexpr int64_t largest_count = 10'000'000;

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

// The classes that the command names.
std::vector<int64_t> classes_of(const Options& options, const std::vector<std::string>& names) {
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

// What --format says, or the ending of the file.
std::string format_of(const Options& options) {
  const std::string format = !options.format.empty()         ? options.format
                             : options.out.ends_with(".npz") ? "npz"
                                                             : "png";
  check(options.out.ends_with("." + format), "sample: --out ", options.out, ": wanted a name that ends in .",
        format, options.format.empty() ? " or .npz" : "");
  check(format == "npz" || options.count <= largest_row, "sample: --count ", options.count,
        ": a sheet has at most ", largest_row, " images a class; --format npz takes more");
  return format;
}

ExitCode write_arrays(const Options& options, const Checkpoint& checkpoint, const SampleOptions& how) {
  const SampleSet set{options.count, classes_of(options, checkpoint.data.class_names), options.seed,
                      options.batch};
  Progress progress;
  write_samples(checkpoint, set, how, options.device, options.out,
                [&](int64_t done) { progress.show(fmt::format("{} of {} samples", done, set.count)); });
  progress.clear();
  const int64_t side = checkpoint.data.image_size, channels = checkpoint.model.in_channels();
  const bool latents = checkpoint.data.latent_scale > 0;
  fmt::print(
      "{} {} in {}, by {} in {} steps with guidance {}: arr_0 {} [{}, {}, {}, {}], arr_1 their classes\n",
      set.count, latents ? "latents" : "pictures", options.out, options.sampler, how.steps, how.guidance,
      latents ? "float32" : "uint8", set.count, latents ? channels : side, side, latents ? side : channels);
  return ExitCode::done;
}

ExitCode run(const Options& options) {
  const std::string format = format_of(options);
  expect_output("sample: --out", options.out);
  const Checkpoint checkpoint = read_checkpoint(options.checkpoint, options.device);
  const std::vector<std::string>& names = checkpoint.data.class_names;
  expect_drawing_model(checkpoint, "sample");
  const SampleOptions how = sample_options(options, checkpoint.model);
  if (format == "npz") return write_arrays(options, checkpoint, how);
  std::vector<int64_t> rows = classes_of(options, names);
  if (rows.empty()) rows = default_classes(names);
  const SampleGrid grid{rows, options.count, options.seed};
  write_png(options.out, draw_sample_grid(checkpoint, grid, how, options.device, "sample"));
  fmt::print("{} images in {}, {} a class, by {} in {} steps; from the top:\n",
             std::ssize(grid.classes) * options.count, options.out, options.count, options.sampler,
             how.steps);
  for (const int64_t k : grid.classes) fmt::print("  {}\n", printable(names[static_cast<size_t>(k)], false));
  return ExitCode::done;
}

}  // namespace

void add_sample(Command& app) {
  Command& command = add_command(
      app, "sample", "Draw images with a diffusion model.",
      {"tessera sample runs/dit --out grid.png",
       "tessera sample runs/dit --classes cat,dog,7 --count 4 --guidance 3 --sampler ddpm --steps 250"
       " --out grid.png",
       "tessera sample runs/dit-xl --count 50000 --sampler ddpm --steps 250 --guidance 1.5 --out "
       "samples.npz"});
  auto options = std::make_shared<Options>();
  command.add_option("checkpoint", options->checkpoint, "A checkpoint, or a run folder (its best one)")
      ->required();
  command
      .add_option(
          "--classes", options->classes,
          "Names or numbers with commas between: a row each, otherwise the first ten; of an .npz taken in "
          "turn, otherwise drawn")
      ->type_name("LIST");
  command.add_option("--count", options->count, "Images a class; of an .npz all images")
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
  command
      .add_option(
          "--format", options->format,
          "png: a sheet; npz: arr_0 of bytes [N, H, W, 3], or of latents [N, C, H, W], and the classes arr_1;"
          " otherwise as the file ends")
      ->check(one_of({"png", "npz"}))
      ->type_name("NAME");
  command.add_option("--batch", options->batch, "Images of an .npz that are drawn at once")
      ->check(between(1, 65536))
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option("--out", options->out,
                  "The file that is written; an .npz that was broken off goes on from FILE.partial")
      ->required()
      ->type_name("FILE");
  add_device(command, options->device);
  add_threads(command);
  on_run(command, [options] { return run(*options); });
}

}  // namespace tessera
