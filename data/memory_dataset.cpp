#include "data/memory_dataset.h"

#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "engine/core/error.h"

namespace tessera {

namespace {

void check_pictures(const Pictures& pictures, const char* split, int64_t classes) {
  check(!pictures.labels.empty(), "memory_dataset: the ", split, " split has no pictures");
  check(pictures.height > 0 && pictures.width > 0, "memory_dataset: the ", split, " split's pictures are ",
        pictures.height, " x ", pictures.width, "; set height and width");
  for (const int32_t label : pictures.labels)
    check(label >= 0 && label < classes, "memory_dataset: label ", label, " in the ", split,
          " split; there are ", classes, " class names, so labels are 0 to ", classes - 1);
}

// By channel, of pixels scaled to [0, 1]. A channel that is constant has a deviation of 1, so it becomes 0.
Normalisation normalisation_of(const Pictures& pictures) {
  const auto channels = static_cast<size_t>(pictures.channels);
  std::array<double, 3> sum{}, squares{};
  for (size_t i = 0; i < pictures.pixels.size(); ++i) {
    const double value = pictures.pixels[i] / 255.0;
    sum[i % channels] += value;
    squares[i % channels] += value * value;
  }
  Normalisation found{};
  const double count = static_cast<double>(pictures.pixels.size()) / static_cast<double>(channels);
  for (size_t c = 0; c < 3; ++c) {
    const size_t from = channels == 3 ? c : 0;
    const double mean = sum[from] / count, variance = squares[from] / count - mean * mean;
    found.mean[c] = static_cast<float>(mean);
    found.deviation[c] = variance > 1e-8 ? static_cast<float>(std::sqrt(variance)) : 1.0f;
  }
  return found;
}

std::shared_ptr<const Split> split_of(Pictures pictures, const char* name) {
  return std::make_shared<StoredSplit>(pictures.height, pictures.width, pictures.channels,
                                       std::move(pictures.pixels), std::move(pictures.labels),
                                       std::string("memory, ") + name);
}

}  // namespace

Dataset memory_dataset(std::vector<std::string> class_names, Pictures train, Pictures validation) {
  const auto classes = static_cast<int64_t>(class_names.size());
  check_pictures(train, "training", classes);
  check_pictures(validation, "validation", classes);
  check(train.height == validation.height && train.width == validation.width,
        "memory_dataset: training pictures are ", train.height, " x ", train.width, ", validation pictures ",
        validation.height, " x ", validation.width, "; they must be equal");
  Dataset dataset;
  dataset.name = "memory";
  dataset.class_names = std::move(class_names);
  dataset.image_shape = {3, train.height, train.width};
  const Normalisation normalisation = normalisation_of(train);
  dataset.train = split_of(std::move(train), "training");
  dataset.validation = split_of(std::move(validation), "validation");
  dataset.normalisation = normalisation;
  return dataset;
}

}  // namespace tessera
