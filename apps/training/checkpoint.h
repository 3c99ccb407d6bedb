#pragma once

// A trained model in one .safetensors file: the weights, and in the metadata the model's config and the facts
// about its data set (classes, normalisation), so that evaluation and prediction need the file alone.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "apps/training/config.h"
#include "models/model.h"

namespace tessera {

/// Facts about the data set that a model was trained on.
struct DataFacts {
  DataConfig source;  ///< its name and how it was split, without paths of this machine
  std::vector<std::string> class_names;
  Normalisation normalisation;
  int64_t image_size = 0;   ///< pixels a side
  int64_t channels = 3;     ///< of an image
  double latent_scale = 0;  ///< see Dataset

  DataFacts() = default;
  DataFacts(const DataConfig& source, const Dataset& dataset);
  /// A data set with these facts and no pictures, to construct a Pipeline from.
  Dataset empty_dataset() const;
};

struct Checkpoint {
  std::filesystem::path path;
  Model model;
  DataFacts data;
  Json training;  ///< epoch, step, top1 and so on, as they were when the file was written
};

/// What makes a .safetensors file a checkpoint: "format", "model", "data" and "training".
std::map<std::string, std::string> checkpoint_metadata(const Json& model_config, const DataFacts& data,
                                                       const Json& training);

/// Writes a checkpoint atomically. `training` may be any object; it is only ever shown.
void write_checkpoint(const std::filesystem::path& path, const NamedTensors& weights,
                      const Json& model_config, const DataFacts& data, const Json& training);

/// Fails for weights that are not finite, whose outputs would look like results; the error names the first.
void expect_finite_weights(const NamedTensors& weights, const std::filesystem::path& path);

/// The checkpoint at `path`: a file itself, or of a run folder best.safetensors, and if there is none
/// last.safetensors. Fails for a folder that has neither.
std::filesystem::path checkpoint_file(const std::filesystem::path& path);

/// Reads checkpoint_file(path). Fails for a file without the metadata, one that has lost its checksum,
/// weights that are not finite, and where config and weights do not match.
Checkpoint read_checkpoint(const std::filesystem::path& path, Device device);

}  // namespace tessera
