// tessera predict: what a checkpoint sees in pictures, and where it looks.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/checkpoint.h"
#include "apps/options.h"
#include "apps/overlay.h"
#include "apps/report.h"
#include "apps/subcommands.h"
#include "apps/task.h"
#include "apps/weights_source.h"
#include "data/augment/pipeline.h"
#include "data/resize.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

struct Options {
  WeightsSource weights;
  std::string checkpoint, overlay;
  std::vector<std::string> images;
  int64_t top = 5;
  bool json = false;
  Device device = Device::cpu;
};

std::vector<double> softmax_of(const std::vector<double>& logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> p(logits.size());
  std::transform(logits.begin(), logits.end(), p.begin(), [&](double x) { return std::exp(x - largest); });
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& each : p) each /= sum;
  return p;
}

// The `top` most likely classes, the likeliest first.
Json best_classes(const std::vector<double>& logits, const std::vector<std::string>& names, int64_t top) {
  const std::vector<double> p = softmax_of(logits);
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] > p[b]; });
  order.resize(std::min(order.size(), static_cast<size_t>(top)));
  Json rows = Json::array();
  for (const size_t k : order) rows.push_back({{"class", k}, {"name", names[k]}, {"probability", p[k]}});
  return rows;
}

// DIR/cat.jpg.png; further pictures of that name get a number.
fs::path overlay_path(const Options& options, size_t i) {
  const std::string name = fs::path(options.images[i]).filename().string();
  const auto same =
      std::count_if(options.images.begin(), options.images.begin() + static_cast<int64_t>(i),
                    [&](const std::string& other) { return fs::path(other).filename() == name; });
  return fs::path(options.overlay) / (name + (same > 0 ? "-" + std::to_string(same + 1) : "") + ".png");
}

Json predict(const Checkpoint& checkpoint, const Pipeline& pipeline, const Options& options, size_t i) {
  const int64_t size = checkpoint.data.image_size;
  const std::string& path = options.images[i];
  const Image image = fit_square(load_image(path), static_cast<int>(size), path);
  const Tensor input = Tensor::empty({1, 3, size, size});
  Image used = image;
  pipeline(used, Random(0), input.data<float>());
  Json row{{"image", path}};
  Pass pass;
  if (options.overlay.empty()) {
    const Tensor logits = checkpoint.model.logits(input.to(options.device), pass);
    row["top"] = best_classes(logits.values(), checkpoint.data.class_names, options.top);
  } else {
    const Looked looked = look(checkpoint.model, input.to(options.device));
    row["top"] = best_classes(looked.logits.values(), checkpoint.data.class_names, options.top);
    const fs::path to = overlay_path(options, i);
    write_png(to, overlay(image, looked.attention));
    row["overlay"] = to.string();
  }
  return row;
}

void print_prediction(const Json& row) {
  fmt::print("{}\n", row["image"].get<std::string>());
  for (const Json& each : row["top"])
    fmt::print("  {:>6.2f} %  {}\n", 100 * each["probability"].get<double>(),
               each["name"].get<std::string>());
  if (row.contains("overlay")) fmt::print("  attention in {}\n", row["overlay"].get<std::string>());
}

ExitCode run(Options options) {
  const bool plain = options.weights.given();
  // Beside --weights every argument is a picture.
  if (plain && !options.checkpoint.empty()) options.images.insert(options.images.begin(), options.checkpoint);
  check(plain || !options.checkpoint.empty(),
        "predict: by what? Give a checkpoint, a run folder, or --weights FILE with --model NAME");
  check(!options.images.empty(), "predict: of what? Give JPEG, PNG or BMP files");
  const Checkpoint checkpoint =
      plain ? options.weights.read(options.device) : read_checkpoint(options.checkpoint, options.device);
  const Task task = task_of(checkpoint.model.config);
  check(task != Task::diffuse, "predict: ", checkpoint.path.string(),
        " draws images, it does not tell them apart; tessera sample shows what it draws");
  check(task != Task::segment, "predict: ", checkpoint.path.string(),
        " gives a class to each pixel, not to a picture; tessera eval judges it");
  const Pipeline pipeline(checkpoint.data.empty_dataset());
  if (!options.overlay.empty()) {
    std::error_code error;
    fs::create_directories(options.overlay, error);
    check(!error, options.overlay, ": the folder cannot be made: ", error.message());
  }
  Json rows = Json::array();
  for (size_t i = 0; i < options.images.size(); ++i) {
    rows.push_back(predict(checkpoint, pipeline, options, i));
    if (!options.json) print_prediction(rows.back());
  }
  if (options.json) print_json(rows);
  return ExitCode::done;
}

}  // namespace

void add_predict(CLI::App& app) {
  CLI::App& command = add_command(
      app, "predict", "The likeliest classes of pictures, and where the model looks.",
      {"tessera predict runs/cifar cat.jpg dog.png", "tessera predict runs/cifar cat.jpg --overlay overlays",
       "tessera predict --weights vit.safetensors --model vit.json --names names.txt cat.jpg"});
  auto options = std::make_shared<Options>();
  command.add_option("checkpoint", options->checkpoint, "A checkpoint, or a run folder (its best one)");
  command.add_option("image", options->images, "JPEG, PNG or BMP files")->type_name("IMAGE...");
  command.add_option("--top", options->top, "Classes a picture")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option(
          "--overlay", options->overlay,
          "Write the class token's attention in the last layer, mean over the heads, over each picture")
      ->type_name("DIR");
  options->weights.add_to(command);
  add_device(command, options->device);
  add_threads(command);
  add_json(command, options->json);
  on_run(command, [options] { return run(*options); });
}

}  // namespace tessera
