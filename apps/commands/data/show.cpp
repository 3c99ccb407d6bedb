#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/data_source.h"
#include "apps/options/model_source.h"
#include "apps/options/options.h"
#include "apps/options/output_file.h"
#include "apps/reporting/sample_grid.h"
#include "apps/reporting/sheet.h"
#include "apps/reporting/token_sheet.h"
#include "apps/training/config.h"
#include "apps/training/recipe.h"
#include "data/loader.h"
#include "data/registry.h"
#include "data/subset.h"
#include "engine/core/error.h"
#include "engine/core/printable.h"
#include "models/presets.h"

namespace tessera {

namespace {

constexpr int margin = 16, gap = 6, least_side = 96;

struct Options {
  DataSource source;
  std::string out, recipe, tokens;
  std::vector<std::string> assignments;
  int64_t pictures = 6, versions = 8, image_size = 0;
  uint64_t seed = 0;
};

TrainConfig config_of(const Options& options) {
  const bool from_recipe = !options.recipe.empty();
  Json document = from_recipe ? read_recipe(options.recipe) : Json::object();
  check(document.is_object(), "recipe ", options.recipe, ": is not a JSON object");
  set_key(document, "data.name", options.source.name, "data show");
  check_folder(options.source.name, options.source.folder);
  set_key(document, "data.dir", options.source.folder, "data show");
  if (options.image_size > 0) set_key(document, "data.image_size", options.image_size, "--image-size");
  if (options.source.coarse_labels) set_key(document, "data.coarse_labels", true, "--coarse-labels");
  for (const std::string& assignment : options.assignments) set_key(document, assignment);
  return read_train_config(document, from_recipe ? "recipe " + options.recipe : "data show");
}

// Rows of a caption and pictures: the stored one, a wider gap, the versions of it.
class Contact {
 public:
  Contact(const std::string& title, int64_t rows, int64_t versions, int side)
      : factor_(std::max(1, (least_side + side - 1) / side)),
        cell_(side * factor_),
        width_(2 * margin + cell_ + 2 * gap + static_cast<int>(versions) * (cell_ + gap)),
        sheet_(2 * margin + 2 * Sheet::line_height + static_cast<int>(rows) * row_height(), width_) {
    sheet_.write(title, margin, margin, width_ - 2 * margin);
    sheet_.write("stored", margin + Sheet::line_height, margin, cell_, true);
  }

  void head(int64_t version, const std::string& text) {
    sheet_.write(text, margin + Sheet::line_height, x_of(version), cell_, true);
  }

  void caption(int64_t row, const std::string& text) {
    sheet_.write(text, y_of(row), margin, width_ - 2 * margin);
  }
  void put_stored(int64_t row, const Image& image) {
    sheet_.put(image, y_of(row) + Sheet::line_height, margin, factor_);
  }
  void put(int64_t row, int64_t version, const Image& image) {
    sheet_.put(image, y_of(row) + Sheet::line_height, x_of(version), factor_);
  }
  const Image& image() const { return sheet_.image(); }

 private:
  int row_height() const { return Sheet::line_height + cell_ + 2 * gap; }
  int y_of(int64_t row) const {
    return margin + 2 * Sheet::line_height + static_cast<int>(row) * row_height();
  }
  int x_of(int64_t version) const {
    return margin + cell_ + 2 * gap + static_cast<int>(version) * (cell_ + gap);
  }

  int factor_, cell_, width_;
  Sheet sheet_;
};

std::string caption_of(const Dataset& data, const Split& split, int64_t i) {
  return data.class_names[static_cast<size_t>(split.label(i))];
}

std::string title_of(const Options& options, const TrainConfig& config) {
  std::string changes;
  for (const std::string& assignment : options.assignments) changes += ", " + assignment;
  return config.data.name + ", " +
         (options.recipe.empty() ? "default augmentation" : "recipe " + options.recipe) + changes;
}

Dataset open_for(const TrainConfig& config) {
  const bool masked = find_dataset(config.data.name).has_masks;
  return open_data(config.data, masked ? Task::segment : task_of(config.model));
}

// A model from a file knows its size, which the pictures then take; a preset takes theirs.
void take_model(TrainConfig& config, const Options& options) {
  const std::string& tokens = options.tokens;
  const bool is_file = tokens.ends_with(".json") || tokens.ends_with(".safetensors");
  config.model = is_file ? ModelSource(tokens, 1, 1).config() : Json{{"preset", tokens}};
  if (!is_file) return;
  const auto size = Fields(config.model, tokens).get<int64_t>("image_size", Range::between(1, 4096));
  check(options.image_size == 0 || options.image_size == size, "data show: --image-size ", options.image_size,
        ": ", tokens, " takes pictures of ", size, " x ", size, " pixels; leave it out");
  config.data.image_size = size;
}

// The first pictures as the model gets them in evaluation. [B, 3, S, S]
Tensor normalised(const Dataset& data, const Split& split) {
  const Pipeline pipeline(data);
  const Tensor pictures =
      Tensor::empty({split.size(), data.image_shape[0], data.image_shape[1], data.image_shape[2]});
  Image image;
  for (int64_t i = 0; i < split.size(); ++i) {
    split.image(i, image);
    pipeline(image, Random(0), pictures.data<float>() + i * data.image_shape.elements());
  }
  return pictures;
}

ExitCode show_tokens(const Options& options) {
  for (const std::string& assignment : options.assignments)
    check(!assignment.starts_with("augment"), "data show: --set ", assignment,
          ": --tokens shows pictures as they are stored, without augmentation; leave one of them out");
  TrainConfig config = config_of(options);
  take_model(config, options);
  const Dataset data = open_for(config);
  check(data.latent_scale == 0, "data show: ", config.data.name,
        " are latents, of which no picture is drawn");
  Json model = config.model;
  if (model.contains("preset")) model = preset(options.tokens, data.image_shape[1], data.classes());
  check(model.value("in_channels", 3) == 3, "data show: --tokens ", options.tokens, ": takes ",
        model.value("in_channels", 3), " channels, an autoencoder's say; a picture has 3");
  const TokenView view = token_view(model, "data show: --tokens " + options.tokens);
  const auto split = subset(data.train, std::min(options.pictures, data.train->size()), options.seed);
  std::vector<std::string> captions;
  for (int64_t i = 0; i < split->size(); ++i) captions.push_back(caption_of(data, *split, i));
  const std::string title = options.tokens + ": " + describe(view);
  write_png(options.out, token_sheet(title, view, normalised(data, *split), captions, data.normalisation));
  fmt::print("{} in {}\n{}\n", split->size() == 1 ? "1 picture" : fmt::format("{} pictures", split->size()),
             options.out, title);
  return ExitCode::done;
}

ExitCode run(const Options& options) {
  check(options.out.ends_with(".png"), "data show: --out ", options.out, ": wanted a name that ends in .png");
  expect_output("data show: --out", options.out);
  if (!options.tokens.empty()) return show_tokens(options);
  const TrainConfig config = config_of(options);
  const Dataset data = open_for(config);
  const int64_t rows = std::min(options.pictures, data.train->size());
  const auto split = subset(data.train, rows, options.seed);
  Contact contact(title_of(options, config), rows, options.versions, static_cast<int>(data.image_shape[1]));
  Image image;
  for (int64_t i = 0; i < rows; ++i) {
    split->image(i, image);
    contact.put_stored(i, image);
    contact.caption(i, caption_of(data, *split, i));
  }

  LoaderOptions how;  // a batch an epoch: the pictures in their order
  how.sampler = {.batch = rows, .shuffle = false};
  how.mix = config.augment.mix;
  how.seed = options.seed;
  Loader loader(split, Pipeline::training(data, config.augment), how);
  for (int64_t version = 0; version < options.versions; ++version) {
    loader.start(version);
    const Batch& batch = *loader.next();
    contact.head(version, batch.other_labels.defined() ? fmt::format("own {:.0f}%", 100 * batch.lam)
                                                       : fmt::format("epoch {}", version + 1));
    const float* pixels = batch.images.data<float>();
    for (int64_t i = 0; i < rows; ++i, pixels += data.image_shape.elements())
      contact.put(i, version, drawn_image(pixels, static_cast<int>(data.image_shape[1]), data.normalisation));
  }
  write_png(options.out, contact.image());
  fmt::print("{} pictures with {} versions each in {}; from the top:\n", rows, options.versions, options.out);
  for (int64_t i = 0; i < rows; ++i)
    fmt::print("  {}: {}\n", printable(caption_of(data, *split, i)), printable(split->source(i)));
  return ExitCode::done;
}

}  // namespace

void add_data_show(Command& data) {
  Command& command = add_command(
      data, "show", "A sheet of pictures as they are stored and as training sees them.",
      {"tessera data show shapes --out sheet.png",
       "tessera data show tiny-imagenet tiny-imagenet-200 --recipe sl-vit-tiny-imagenet-quick --out "
       "sheet.png",
       "tessera data show cifar10 cifar-10-batches-bin --set augment.crop_padding=8 --out sheet.png",
       "tessera data show shapes --tokens s-vit --out tokens.png"},
      "The versions are made by the loader that feeds training, one an epoch. Where a batch is mixed, the "
      "column says how much of each picture is its own; the rest is another row's. With --tokens the sheet "
      "shows what a model makes its tokens of: each picture and, with Shifted Patch Tokenization, its "
      "shifted copies, each under the way in which it was moved, and the lines between the tokens.");
  const auto options = std::make_shared<Options>();
  add_source(command, options->source);
  command.add_option("--out", options->out, "The PNG file to write")->required()->type_name("FILE");
  Option* tokens = command.add_option(
      "--tokens", options->tokens,
      "Show what this model's tokenizer sees: a preset, a config (.json) or a checkpoint (.safetensors)");
  tokens->type_name("MODEL");
  command
      .add_option("--recipe", options->recipe, "The recipe whose augmentation is shown, built in or a file")
      ->type_name("NAME")
      ->excludes(tokens);
  command.add_option("--set", options->assignments, "Changes a key of the recipe: augment.flip=false")
      ->type_name("KEY=VALUE");
  command.add_option("--pictures", options->pictures, "Rows; default: 6")
      ->check(between(1, 100))
      ->type_name("N");
  command.add_option("--versions", options->versions, "Augmented versions of each; default: 8")
      ->check(between(1, 100))
      ->type_name("N")
      ->excludes(tokens);
  command.add_option("--image-size", options->image_size, "Pixels a side; default: the data set's own")
      ->check(positive())
      ->type_name("N");
  add_seed(command, options->seed);
  on_run(command, [options] { return run(*options); });
}

}  // namespace tessera
