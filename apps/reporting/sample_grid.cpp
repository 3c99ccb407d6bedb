#include "apps/reporting/sample_grid.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/reporting/sheet.h"
#include "engine/core/error.h"
#include "engine/core/frozen_weights.h"
#include "models/diffusion.h"

namespace tessera {

namespace {

constexpr int64_t most_rows = 10;  // of default_classes
constexpr int64_t at_once = 32;    // images in one batch
constexpr int margin = 6;          // around each image, in pixels
constexpr int least_side = 64;     // of an image on the sheet; smaller ones are enlarged
constexpr int least_width = 300;   // of the sheet, so that its words have room

// Rows of images, each under the name of its class.
class GridSheet {
 public:
  GridSheet(const SampleGrid& grid, const Checkpoint& checkpoint)
      : columns_(grid.count),
        size_(static_cast<int>(checkpoint.data.image_size)),
        factor_(std::max(1, (least_side + size_ - 1) / size_)),
        sheet_(margin + static_cast<int>(std::ssize(grid.classes)) * row_height(),
               std::max(least_width, margin + static_cast<int>(columns_) * (side() + margin))) {
    int y = margin;
    for (const int64_t k : grid.classes) {
      sheet_.write(checkpoint.data.class_names.at(static_cast<size_t>(k)), y, margin,
                   sheet_.image().width - 2 * margin);
      y += row_height();
    }
  }

  void put(int64_t number, const Image& image) {
    const auto row = static_cast<int>(number / columns_), column = static_cast<int>(number % columns_);
    sheet_.put(image, margin + row * row_height() + Sheet::line_height, margin + column * (side() + margin),
               factor_);
  }
  const Image& image() const { return sheet_.image(); }

 private:
  int side() const { return size_ * factor_; }
  int row_height() const { return Sheet::line_height + side() + margin; }

  int64_t columns_;
  int size_, factor_;
  Sheet sheet_;
};

}  // namespace

SampleOptions default_sampling(const Model& model, int64_t steps) {
  const int64_t all = model.config.value("steps", int64_t{1000});
  return {.sampler = DiffusionSampler::ddim,
          .steps = std::min(steps, all),
          .guidance = model.config.value("label_dropout", 0.0) > 0 ? 1.5 : 1,
          .clip = model.in_channels() == 3};
}

Image drawn_image(const float* pixels, int size, const Normalisation& n) {
  Image image(size, size);
  for (size_t c = 0; c < 3; ++c)
    for (int y = 0; y < size; ++y)
      for (int x = 0; x < size; ++x, ++pixels) {
        const float value = 255 * (*pixels * n.deviation[c] + n.mean[c]);
        image.at(y, x)[c] = static_cast<uint8_t>(std::lround(std::clamp(value, 0.0f, 255.0f)));
      }
  return image;
}

void expect_drawing_model(const Checkpoint& checkpoint, const std::string& where) {
  check(checkpoint.model.sample != nullptr, where, ": ", checkpoint.path.string(),
        " is not a diffusion model, so it cannot draw; train one with --model dit-xt");
  check(checkpoint.model.in_channels() == 3 || checkpoint.data.latent_scale > 0, where, ": ",
        checkpoint.path.string(), " draws ", checkpoint.model.in_channels(), " channels; a picture has 3");
}

std::vector<int64_t> default_classes(const std::vector<std::string>& names) {
  std::vector<int64_t> classes;
  for (int64_t k = 0; k < std::min(most_rows, std::ssize(names)); ++k) classes.push_back(k);
  return classes;
}

Image draw_default_grid(const Checkpoint& checkpoint, const SampleGrid& grid, int64_t steps, Device device,
                        const std::string& where) {
  return draw_sample_grid(checkpoint, grid, default_sampling(checkpoint.model, steps), device, where);
}

Image draw_sample_grid(const Checkpoint& checkpoint, const SampleGrid& grid, const SampleOptions& how,
                       Device device, const std::string& where) {
  expect_drawing_model(checkpoint, where);
  check(checkpoint.data.latent_scale == 0, where, ": ", checkpoint.path.string(),
        " draws an autoencoder's latents, of which its decoder makes pictures; give --format npz");
  const int64_t size = checkpoint.data.image_size, images = std::ssize(grid.classes) * grid.count;
  GridSheet sheet(grid, checkpoint);
  const FrozenWeights frozen(checkpoint.model.parameters.state());
  for (int64_t first = 0; first < images; first += at_once) {
    std::vector<int64_t> labels;
    for (int64_t i = first; i < std::min(images, first + at_once); ++i)
      labels.push_back(grid.classes[static_cast<size_t>(i / grid.count)]);
    const int64_t count = std::ssize(labels);
    Pass pass{.random = Random(grid.seed).split(static_cast<uint64_t>(first))};
    const Tensor drawn =
        checkpoint.model.sample(Tensor::from(labels, {count}).to(device), how, pass).to(Device::cpu);
    for (int64_t i = 0; i < count; ++i)
      sheet.put(first + i, drawn_image(drawn.data<float>() + i * 3 * size * size, static_cast<int>(size),
                                       checkpoint.data.normalisation));
  }
  return sheet.image();
}

}  // namespace tessera
