#pragma once

// The data set of a training run's config, and what the model takes over from it.

#include <nlohmann/json.hpp>
#include <string>

#include "apps/training/task.h"
#include "data/dataset.h"
#include "engine/io/json.h"

namespace tessera {

struct DataConfig {
  std::string name;        ///< of the data set, see data/registry.h
  std::string dir;         ///< its folder; recipes leave it out, and --data gives it
  int64_t image_size = 0;  ///< pixels a side; 0: the data set's own
  int64_t seed = 0;        ///< draws a folder's split, the shapes, and the subsets below
  double validation_fraction = 0.1;
  bool coarse_labels = false;
  int64_t cache_mb = 256;         ///< MiB of decoded pictures that are kept in memory
  bool on_device = true;          ///< on a GPU: keep the training pictures in its memory if they fit
  int64_t train_images = 0;       ///< train on a subset of this size, drawn by the seed; 0: on all
  int64_t validation_images = 0;  ///< evaluate on a subset of this size; 0: on all
  double latent_scale = usual_latent_scale;  ///< multiplies the numbers of latents
  double test_crop = 1;                      ///< see SquareFit: of validation pictures in files
  std::string test_filter = "bilinear";      ///< that resizes them, or "bicubic"
  std::string token_labels;  ///< folder of a teacher's maps, see data/token_labels.h; empty: none
};

/// The "data" object of a run's config.
DataConfig read_data_config(Fields fields);
Json to_json(const DataConfig& config);

/// How the config's validation pictures, and those that a run of it predicts, become squares.
SquareFit test_fit(const DataConfig& config);

DatasetOptions dataset_options(const DataConfig& config);

/// Opens the config's data set, cut to train_images and validation_images. A diffusion model's pixels are
/// scaled to [-1, 1], the range that sampling keeps to. Fails where only one of model and data set is about
/// pixels' classes, and for latents where the model is no diffusion model.
Dataset open_data(const DataConfig& config, Task task = Task::classify);

/// What open_data would find, known without any file; see unopened_dataset in data/registry.h.
Dataset expected_data(const DataConfig& config);

/// The model's whole config ("arch" and all) for images and classes of `dataset`. Fails for an unknown
/// preset, and where a given image_size, num_classes or in_channels is not the data set's.
Json resolve_model(const Json& model, const Dataset& dataset);

}  // namespace tessera
