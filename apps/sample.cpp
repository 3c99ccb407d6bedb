// tessera sample: images that a diffusion model draws, a row a class.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "apps/checkpoint.h"
#include "apps/options.h"
#include "apps/subcommands.h"
#include "engine/core/error.h"
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

constexpr int64_t most_rows = 10;       // where no classes are named
constexpr int64_t at_once = 32;         // images that are drawn together
constexpr int64_t usual_steps = 50;     // where no number is given, and the chain has more
constexpr int64_t margin = 2;           // white pixels around each image
constexpr int64_t largest_count = 100;  // images a class

// A class by its name or its number.
int64_t class_of(const std::string& word, const std::vector<std::string>& names) {
  if (const auto found = std::find(names.begin(), names.end(), word); found != names.end())
    return found - names.begin();
  const bool number = !word.empty() && word.size() < 10 && word.find_first_not_of("0123456789") == word.npos;
  check(number, "sample: --classes: there is no class '", word, "'", did_you_mean(word, names));
  const int64_t k = std::stoll(word);
  check(k < std::ssize(names), "sample: --classes: there is no class ", k, "; they are numbered 0 to ",
        names.size() - 1);
  return k;
}

// The class of each row.
std::vector<int64_t> rows_of(const Options& options, const std::vector<std::string>& names) {
  std::vector<int64_t> rows;
  if (options.classes.empty()) {
    for (int64_t k = 0; k < std::min(most_rows, std::ssize(names)); ++k) rows.push_back(k);
    return rows;
  }
  std::istringstream words(options.classes);
  for (std::string word; std::getline(words, word, ',');) rows.push_back(class_of(word, names));
  return rows;
}

// Images on white, `columns` a row.
class Contact {
 public:
  Contact(int64_t rows, int64_t columns, int64_t size, const std::string& path)
      : columns_(columns), size_(size) {
    const int64_t height = margin + rows * (size + margin), width = margin + columns * (size + margin);
    check_dimensions(height, width, path);
    image_.resize(static_cast<int>(height), static_cast<int>(width));
    std::fill(image_.pixels.begin(), image_.pixels.end(), uint8_t{255});
  }

  // pixels [3, size, size], normalised
  void put(int64_t number, const float* pixels, const Normalisation& n) {
    const int64_t top = margin + number / columns_ * (size_ + margin),
                  left = margin + number % columns_ * (size_ + margin);
    for (size_t c = 0; c < 3; ++c)
      for (int64_t y = 0; y < size_; ++y)
        for (int64_t x = 0; x < size_; ++x, ++pixels) {
          const float value = 255 * (*pixels * n.deviation[c] + n.mean[c]);
          image_.at(static_cast<int>(top + y), static_cast<int>(left + x))[c] =
              static_cast<uint8_t>(std::lround(std::clamp(value, 0.0f, 255.0f)));
        }
  }

  const Image& image() const { return image_; }

 private:
  int64_t columns_, size_;
  Image image_;
};

void check_model(const Checkpoint& checkpoint) {
  const std::string path = checkpoint.path.string();
  check(checkpoint.model.sample != nullptr, "sample: ", path,
        " is no diffusion model, it draws nothing; train one with --model dit-xt");
  check(checkpoint.model.in_channels() == 3, "sample: ", path, " draws ", checkpoint.model.in_channels(),
        " channels; a picture has 3");
}

SampleOptions sample_options(const Options& options, const Model& model) {
  const int64_t all = model.config.value("steps", int64_t{1000});
  return {.sampler = options.sampler == "ddim" ? Sampler::ddim : Sampler::ddpm,
          .steps = options.steps > 0 ? options.steps : std::min(usual_steps, all),
          .guidance = options.guidance.value_or(model.config.value("label_dropout", 0.0) > 0 ? 1.5 : 1),
          .clip = true};
}

ExitCode run(const Options& options) {
  check(options.out.ends_with(".png"), "sample: --out ", options.out, ": wanted a name that ends in .png");
  const Checkpoint checkpoint = read_checkpoint(options.checkpoint, options.device);
  check_model(checkpoint);
  const std::vector<int64_t> rows = rows_of(options, checkpoint.data.class_names);
  const int64_t size = checkpoint.data.image_size, images = std::ssize(rows) * options.count;
  const SampleOptions how = sample_options(options, checkpoint.model);
  Contact contact(std::ssize(rows), options.count, size, options.out);
  for (int64_t first = 0; first < images; first += at_once) {
    std::vector<int64_t> labels;
    for (int64_t i = first; i < std::min(images, first + at_once); ++i)
      labels.push_back(rows[static_cast<size_t>(i / options.count)]);
    const int64_t count = std::ssize(labels);
    Pass pass{.random = Random(options.seed).split(static_cast<uint64_t>(first))};
    const Tensor drawn =
        checkpoint.model.sample(Tensor::from(labels, {count}).to(options.device), how, pass).to(Device::cpu);
    for (int64_t i = 0; i < count; ++i)
      contact.put(first + i, drawn.data<float>() + i * 3 * size * size, checkpoint.data.normalisation);
  }
  write_png(options.out, contact.image());
  fmt::print("{} images in {}, {} a class, by {} in {} steps; from the top:\n", images, options.out,
             options.count, options.sampler, how.steps);
  for (const int64_t k : rows) fmt::print("  {}\n", checkpoint.data.class_names[static_cast<size_t>(k)]);
  return ExitCode::done;
}

}  // namespace

void add_sample(CLI::App& app) {
  CLI::App& command = add_command(
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
      ->check(CLI::Range(int64_t{1}, largest_count).description(""))
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--steps", options->steps, "Of the model's chain, evenly spaced; otherwise 50, or all")
      ->check(CLI::Range(int64_t{2}, int64_t{1000000}).description(""))
      ->type_name("N");
  command
      .add_option("--guidance", options->guidance,
                  "Away from the image of no class: 1 not at all, more is clearer and less varied; otherwise"
                  " 1.5, or 1 for a model that knows no such image")
      ->check(CLI::Range(0.0, 100.0).description(""))
      ->type_name("X");
  command.add_option("--sampler", options->sampler, "ddim, or ddpm, which draws noise in every step")
      ->check(CLI::IsMember({"ddim", "ddpm"}))
      ->capture_default_str()
      ->type_name("NAME");
  add_seed(command, options->seed);
  command.add_option("--out", options->out, "The picture that is written")->required()->type_name("FILE.png");
  add_device(command, options->device);
  add_threads(command);
  on_run(command, [options] { return run(*options); });
}

}  // namespace tessera
