#pragma once

// A trained model in one .safetensors file: weights, and in the metadata the model's config and what it needs
// to know of its data, so that eval and predict need no more than the file.

#include <filesystem>
#include <string>
#include <vector>

#include "apps/training/config.h"
#include "models/model.h"

namespace tessera {

// Of the data set that a model was trained on.
struct DataFacts {
  DataConfig source;  // which one and how it was cut; not where it lies or is kept
  std::vector<std::string> class_names;
  Normalisation normalisation;
  int64_t image_size = 0;  // pixels a side

  DataFacts() = default;
  DataFacts(const DataConfig& source, const Dataset& dataset);
  // A data set without pictures, for a Pipeline.
  Dataset empty_dataset() const;
};

struct Checkpoint {
  std::filesystem::path path;
  Model model;
  DataFacts data;
  Json training;  // epoch, step, top1 ...: what it was when it was written
};

// `training` may be any object; it is shown, never needed.
void write_checkpoint(const std::filesystem::path& path, const NamedTensors& weights,
                      const Json& model_config, const DataFacts& data, const Json& training);

// The file that `path` means: of a run folder, its best.safetensors, else its last. Fails for a folder that
// has neither.
std::filesystem::path checkpoint_file(const std::filesystem::path& path);

// Reads checkpoint_file(path). Fails for a file without the metadata, and where
// config and weights do not match.
Checkpoint read_checkpoint(const std::filesystem::path& path, Device device);

}  // namespace tessera
