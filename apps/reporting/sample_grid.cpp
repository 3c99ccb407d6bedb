#include "apps/reporting/sample_grid.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "models/diffusion.h"

namespace tessera {

namespace {

constexpr int64_t most_rows = 10;  // of default_classes
constexpr int64_t at_once = 32;    // images in one batch
constexpr int64_t margin = 2;      // white pixels around each image

// Lays images out on white, `columns` a row.
class ImageGrid {
 public:
  ImageGrid(int64_t rows, int64_t columns, int64_t size, const std::string& path)
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

  Image take() { return std::move(image_); }

 private:
  int64_t columns_, size_;
  Image image_;
};

}  // namespace

SampleOptions default_sampling(const Model& model, int64_t steps) {
  const int64_t all = model.config.value("steps", int64_t{1000});
  return {.sampler = DiffusionSampler::ddim,
          .steps = std::min(steps, all),
          .guidance = model.config.value("label_dropout", 0.0) > 0 ? 1.5 : 1,
          .clip = true};
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
  check(checkpoint.model.sample != nullptr, where, ": ", checkpoint.path.string(),
        " is not a diffusion model, so it cannot draw; train one with --model dit-xt");
  check(checkpoint.model.in_channels() == 3, where, ": ", checkpoint.path.string(), " draws ",
        checkpoint.model.in_channels(), " channels; a picture has 3");
  const int64_t size = checkpoint.data.image_size, images = std::ssize(grid.classes) * grid.count;
  ImageGrid sheet(std::ssize(grid.classes), grid.count, size, where);
  for (int64_t first = 0; first < images; first += at_once) {
    std::vector<int64_t> labels;
    for (int64_t i = first; i < std::min(images, first + at_once); ++i)
      labels.push_back(grid.classes[static_cast<size_t>(i / grid.count)]);
    const int64_t count = std::ssize(labels);
    Pass pass{.random = Random(grid.seed).split(static_cast<uint64_t>(first))};
    const Tensor drawn =
        checkpoint.model.sample(Tensor::from(labels, {count}).to(device), how, pass).to(Device::cpu);
    for (int64_t i = 0; i < count; ++i)
      sheet.put(first + i, drawn.data<float>() + i * 3 * size * size, checkpoint.data.normalisation);
  }
  return sheet.take();
}

}  // namespace tessera
