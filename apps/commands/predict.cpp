// tessera predict: the likeliest classes of pictures, and where the model looks.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "apps/commands/commands.h"
#include "apps/options/options.h"
#include "apps/options/output_file.h"
#include "apps/options/weights_source.h"
#include "apps/reporting/overlay.h"
#include "apps/reporting/picture_files.h"
#include "apps/reporting/table.h"
#include "apps/training/checkpoint.h"
#include "apps/training/csv.h"
#include "apps/training/number_watch.h"
#include "apps/training/task.h"
#include "data/augment/pipeline.h"
#include "data/formats/resize.h"
#include "engine/core/error.h"
#include "engine/core/frozen_weights.h"
#include "engine/core/printable.h"
#include "engine/io/file.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

struct Options {
  WeightsSource weights;
  std::string checkpoint, overlay, csv;
  std::vector<std::string> images;
  int64_t top = 5, layer = -1;
  bool heads = false, rolled = false, json = false;
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

// The file of each picture's overlay: DIR/cat.jpg.png. Of pictures with the same name, those after the first
// have the folder they come from before it, and a number where that is not enough: DIR/b-cat.jpg.png.
std::vector<fs::path> overlay_paths(const std::vector<std::string>& images, const std::string& folder) {
  std::vector<fs::path> paths;
  std::set<std::string> taken;
  for (const std::string& image : images) {
    const fs::path path = fs::absolute(image).lexically_normal();
    std::string name = path.filename().string();
    if (taken.contains(name)) name = path.parent_path().filename().string() + "-" + name;
    std::string free = name;
    for (int64_t number = 2; taken.contains(free); ++number) free = name + "-" + std::to_string(number);
    taken.insert(free);
    paths.push_back(fs::path(folder) / (free + ".png"));
  }
  return paths;
}

// Layer 1 is the first, -1 the last.
const AttentionLayer& chosen_layer(const AttentionRecord& record, int64_t layer) {
  const int64_t count = std::ssize(record.layers), index = layer > 0 ? layer - 1 : count + layer;
  check(layer != 0 && index >= 0 && index < count, "predict: --layer ", layer, ": the model has ", count,
        " layers of attention, 1 to ", count, ", or from the last -1 to -", count);
  return record.layers[static_cast<size_t>(index)];
}

// Draws the overlay, and returns its file, layer and the names of its maps in their order.
Json draw_overlay(const AttentionRecord& record, const Image& image, const Options& options,
                  const fs::path& to, const std::string& title, const Json& top) {
  const AttentionLayer& layer = chosen_layer(record, options.layer);
  Json maps{"mean of the heads"};
  std::vector<NamedMap> first_row{{"mean of heads", layer.mean_heat()}}, heads;
  if (options.rolled) {
    first_row.push_back({"rollout", attention_rollout(record.layers)});
    maps.push_back("rollout");
  }
  for (int64_t h = 0; options.heads && h < layer.heads(); ++h) {
    heads.push_back({fmt::format("head {}", h + 1), layer.head_heat(h)});
    maps.push_back(heads.back().name);
  }
  std::string note;
  for (const Json& each : top)
    note += fmt::format("{}{} {:.1f} %", note.empty() ? "" : ", ", each["name"].get<std::string>(),
                        100 * each["probability"].get<double>());
  write_png(to, overlay(image, first_row, heads, title + ", " + layer.path(), note));
  return {{"file", to.string()},
          {"layer", layer.path()},
          {"grid", {layer.grid().height, layer.grid().width}},
          {"maps", maps}};
}

Json predict(const Checkpoint& checkpoint, const Pipeline& pipeline, const Options& options,
             const std::string& path, const fs::path* overlay_to) {
  const int64_t size = checkpoint.data.image_size;
  const Image stored = load_image(path);
  const Image image = fit_square(stored, static_cast<int>(size), path, test_fit(checkpoint.data.source));
  const Tensor input = Tensor::empty({1, 3, size, size});
  Image used = image;
  pipeline(used, Random(0), input.data<float>());
  const auto top = [&](const Tensor& logits) {
    if (const auto bad = not_finite(logits))
      fail("predict: ", path, ": the model's outputs are not finite: ", *bad);
    return best_classes(logits.values(), checkpoint.data.class_names, options.top);
  };
  if (!overlay_to) {
    Pass pass{.answer_only = true};
    return {{"image", path}, {"top", top(checkpoint.model.logits(input.to(options.device), pass))}};
  }
  const AttentionRecord record = record_attention(checkpoint.model, input.to(options.device));
  const Json classes = top(record.logits);
  std::string title =
      fmt::format("{}, {} x {}", fs::path(path).filename().string(), stored.width, stored.height);
  if (stored.width != stored.height || checkpoint.data.source.test_crop < 1)
    title += ", the square in its middle";
  return {{"image", path},
          {"top", classes},
          {"overlay", draw_overlay(record, image, options, *overlay_to, title, classes)}};
}

// One CSV line for each picture: the image, then class, name and probability of each of its top classes.
std::string prediction_csv(const Json& rows) {
  std::vector<std::string> header{"image"};
  for (size_t i = 1; i <= rows.front()["top"].size(); ++i)
    for (const char* column : {"class", "name", "probability"})
      header.push_back(fmt::format("{}{}", column, i));
  std::string text = csv_line(header);
  for (const Json& row : rows) {
    std::vector<std::string> fields{row["image"].get<std::string>()};
    for (const Json& each : row["top"])
      for (const char* column : {"class", "name", "probability"}) fields.push_back(as_text(each[column]));
    text += csv_line(fields);
  }
  return text;
}

void print_prediction(const Json& row) {
  fmt::print("{}\n", printable(row["image"].get<std::string>(), false));
  for (const Json& each : row["top"])
    fmt::print("  {:>6.2f} %  {}\n", 100 * each["probability"].get<double>(),
               printable(each["name"].get<std::string>(), false));
  if (!row.contains("overlay")) return;
  const Json& o = row["overlay"];
  fmt::print("  attention of {} in {}: picture", o["layer"].get<std::string>(),
             printable(o["file"].get<std::string>(), false));
  for (const Json& map : o["maps"]) fmt::print(", {}", map.get<std::string>());
  fmt::print("\n");
}

void check_options(const Options& options) {
  const bool asked = options.heads || options.rolled || options.layer != -1;
  check(!asked || !options.overlay.empty(),
        "predict: --heads, --rollout and --layer say what --overlay draws; give --overlay DIR");
}

ExitCode run(Options options) {
  check_options(options);
  const bool plain = options.weights.given();
  // Beside --weights every argument is a picture.
  if (plain && !options.checkpoint.empty()) options.images.insert(options.images.begin(), options.checkpoint);
  check(plain || !options.checkpoint.empty(),
        "predict: by what? Give a checkpoint, a run folder, or --weights FILE with --model NAME");
  check(!options.images.empty(), "predict: of what? Give JPEG, PNG or BMP files, or folders of them");
  expect_output("predict: --csv", options.csv);
  const Checkpoint checkpoint =
      plain ? options.weights.read(options.device) : read_checkpoint(options.checkpoint, options.device);
  const Task task = task_of(checkpoint.model.config);
  check(task != Task::diffuse, "predict: ", checkpoint.path.string(),
        " draws images, it does not tell them apart; tessera sample shows what it draws");
  check(task != Task::segment, "predict: ", checkpoint.path.string(),
        " gives a class to each pixel, not to a picture; tessera eval judges it");
  const Pipeline pipeline(checkpoint.data.empty_dataset());
  const std::vector<std::string> images = picture_files(options.images);
  const std::vector<fs::path> overlays = overlay_paths(images, options.overlay);
  if (!options.overlay.empty()) {
    std::error_code error;
    fs::create_directories(options.overlay, error);
    check(!error, options.overlay, ": the folder cannot be made: ", error.message());
  }
  const FrozenWeights frozen(checkpoint.model.parameters.state());
  Json rows = Json::array();
  int64_t refused = 0;
  for (size_t i = 0; i < images.size(); ++i) {
    try {
      rows.push_back(predict(checkpoint, pipeline, options, images[i],
                             options.overlay.empty() ? nullptr : &overlays[i]));
      if (!options.json) print_prediction(rows.back());
    } catch (const Error& error) {
      if (images.size() == 1) throw;
      ++refused;
      fmt::print(stderr, "tessera: {}\n", printable(error.what()));
    }
  }
  if (refused > 0)
    fmt::print(stderr, "tessera: predict: {} of {} pictures could not be judged\n", refused, images.size());
  check(!rows.empty(), "predict: none of the pictures could be judged");
  if (!options.csv.empty()) write_file_atomically(options.csv, prediction_csv(rows));
  if (options.json) print_json(rows);
  return refused > 0 ? ExitCode::bad_usage : ExitCode::done;
}

}  // namespace

void add_predict(Command& app) {
  Command& command =
      add_command(app, "predict", "The likeliest classes of pictures, and where the model looks.",
                  {"tessera predict runs/cifar cat.jpg dog.png",
                   "tessera predict runs/cifar cat.jpg --overlay overlays --heads --rollout",
                   "tessera predict runs/cifar photos --csv photos.csv",
                   "tessera predict --weights vit.safetensors --model vit.json --names names.txt cat.jpg"},
                  "A picture that cannot be read is named, the others are judged, and the exit code is 2.\n\n"
                  "An overlay is a PNG: the picture, the attention of one layer, mean over the heads, with "
                  "--rollout what all layers together let through, with --heads each head below. It shows "
                  "where the class token looks; in a model without one, where all tokens look on average. "
                  "3.0x means three times an even share; heads have one scale of colours.");
  auto options = std::make_shared<Options>();
  command.add_option("checkpoint", options->checkpoint, "A checkpoint, or a run folder (its best one)");
  command
      .add_option("image", options->images,
                  "JPEG, PNG or BMP files, folders of them, or patterns like '*.png'")
      ->type_name("IMAGE...");
  command.add_option("--top", options->top, "Classes a picture")
      ->check(positive())
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--csv", options->csv, "Write the classes of each picture into this file too")
      ->type_name("FILE");
  command.add_option("--overlay", options->overlay, "Draw where the model looks over each picture, into DIR")
      ->type_name("DIR");
  command.add_flag("--heads", options->heads, "In the overlay: every head by itself too");
  command.add_flag("--rollout", options->rolled, "In the overlay: attention rollout through all layers too");
  command.add_option("--layer", options->layer, "In the overlay: of this layer, 1 the first, -1 the last")
      ->capture_default_str()
      ->type_name("N");
  options->weights.add_to(command);
  add_device(command, options->device);
  add_threads(command);
  add_json(command, options->json);
  on_run(command, [options] { return run(*options); });
}

}  // namespace tessera
