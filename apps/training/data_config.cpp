#include "apps/training/data_config.h"

#include <filesystem>
#include <new>

#include "data/registry.h"
#include "engine/core/error.h"
#include "models/kinds.h"
#include "models/presets.h"

namespace tessera {

namespace {

void match(Json& config, const char* key, int64_t wanted, const Dataset& dataset) {
  const Json given = config.value(key, Json(wanted));
  check(given == Json(wanted), "model: ", key, " is ", given.dump(), ", ", dataset.name, " has ", wanted);
  config[key] = wanted;
}

Dataset opened(const DataConfig& config) {
  std::error_code denied;  // for the data set to tell
  check(config.dir.empty() || std::filesystem::exists(config.dir, denied) || denied, "data: ", config.name,
        ": there is no ", config.dir, "; give --data DIR");
  try {
    return open_dataset(config.name, config.dir, dataset_options(config));
  } catch (const std::bad_alloc&) {
    fail("data: ", config.name, ": no memory for its images; fewer of them (--set data.train_images=N, ",
         "data.validation_images=N) or smaller ones (--image-size N) take less");
  }
}

}  // namespace

DataConfig read_data_config(Fields f) {
  const Range count = Range::between(0, 1e9);  // so that a run's steps can be counted in 64 bits
  DataConfig d;
  d.name = f.get<std::string>("name", d.name);
  d.dir = f.get<std::string>("dir", d.dir);
  d.image_size = f.get("image_size", d.image_size, Range::between(0, 4096));
  d.seed = f.get("seed", d.seed, Range::at_least(0));
  d.validation_fraction = f.get("validation_fraction", d.validation_fraction, Range::between(0, 1));
  d.coarse_labels = f.get("coarse_labels", d.coarse_labels);
  d.cache_mb = f.get("cache_mb", d.cache_mb, Range::between(0, 1 << 20));
  d.on_device = f.get("on_device", d.on_device);
  d.train_images = f.get("train_images", d.train_images, count);
  d.validation_images = f.get("validation_images", d.validation_images, count);
  d.latent_scale = f.get("latent_scale", d.latent_scale, Range::above(0));
  d.test_crop = f.get("test_crop", d.test_crop, Range::between(0.1, 1));
  d.test_filter = f.choice("test_filter", {"bilinear", "bicubic"}, "bilinear");
  d.token_labels = f.get<std::string>("token_labels", d.token_labels);
  f.done();
  return d;
}

Json to_json(const DataConfig& d) {
  return {{"name", d.name},
          {"dir", d.dir},
          {"image_size", d.image_size},
          {"seed", d.seed},
          {"validation_fraction", d.validation_fraction},
          {"coarse_labels", d.coarse_labels},
          {"cache_mb", d.cache_mb},
          {"on_device", d.on_device},
          {"train_images", d.train_images},
          {"validation_images", d.validation_images},
          {"latent_scale", d.latent_scale},
          {"test_crop", d.test_crop},
          {"test_filter", d.test_filter},
          {"token_labels", d.token_labels}};
}

SquareFit test_fit(const DataConfig& config) { return {config.test_crop, config.test_filter == "bicubic"}; }

DatasetOptions dataset_options(const DataConfig& config) {
  DatasetOptions options;
  options.image_size = static_cast<int>(config.image_size);
  options.seed = static_cast<uint64_t>(config.seed);
  options.validation_fraction = config.validation_fraction;
  options.latent_scale = config.latent_scale;
  options.coarse_labels = config.coarse_labels;
  options.cache_bytes = static_cast<size_t>(config.cache_mb) << 20;
  options.train_images = config.train_images;
  options.validation_images = config.validation_images;
  options.test_fit = test_fit(config);
  return options;
}

Dataset open_data(const DataConfig& config, Task task) {
  Dataset dataset = opened(config);
  const bool has_masks = dataset.train->has_masks();
  check(task != Task::segment || has_masks, "data: ", config.name,
        " has no class for each pixel, which a segmenter is trained on; shapes-seg and ade20k have");
  check(task == Task::segment || !has_masks, "data: ", config.name,
        " gives a class to each pixel; a segmenter is trained on it, --model lvvit-s-seg say");
  check(task == Task::diffuse || dataset.latent_scale == 0, "data: ", config.name,
        " holds an autoencoder's latents, from which a diffusion model learns; --model dit-s-2 say");
  if (task == Task::diffuse) dataset.normalisation = {{0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}};
  return dataset;
}

Dataset expected_data(const DataConfig& config) {
  return unopened_dataset(config.name, dataset_options(config));
}

Json resolve_model(const Json& model, const Dataset& dataset) {
  const int64_t image_size = dataset.image_shape[1];
  Json config = model;
  if (model.contains("preset")) {
    Json changes = model;
    changes.erase("preset");
    config = changed(preset(model.at("preset").get<std::string>(), image_size, dataset.classes()), changes);
  }
  config = without_nulls(config);
  match(config, "image_size", image_size, dataset);
  match(config, "num_classes", dataset.classes(), dataset);
  if (dataset.latent_scale > 0 || config.contains("in_channels"))
    match(config, "in_channels", dataset.image_shape[0], dataset);
  return config;
}

}  // namespace tessera
