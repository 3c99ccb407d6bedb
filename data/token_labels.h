#pragma once

#include <filesystem>
#include <memory>

#include "data/dataset.h"
#include "engine/core/tensor.h"

namespace tessera {

/// A teacher's predictions at every place of each image, for token labelling (Jiang et al., 2021), read from
/// files. A file holds one tensor "token_labels" [2, T, h, w], F32 or F16: at each of h x w places of the
/// stored image the T largest scores (logits), then their classes. The file of
/// train/n01440764/n01440764_10026.JPEG is n01440764/n01440764_10026.safetensors in the folder; that of an
/// image without a file is NUMBER.safetensors (Split::name). The maps that LV-ViT's authors published are
/// such tensors in PyTorch files of those names.
class TokenLabels {
 public:
  /// For the training images of `training`. Fails if the folder or an image's file is missing, naming the
  /// image, or if the first file is malformed.
  TokenLabels(const std::filesystem::path& folder, const Dataset& training);

  const Shape& shape() const { return shape_; }  ///< of every map: that of the first

  /// Writes the map of image i to `to`. Classes that the data set leaves out (imagenet-100) get the score 0,
  /// as do all that are not among the T. Fails, naming the file, unless it holds such a tensor of shape(),
  /// the scores are finite, and the classes belong to the data set, each at most once at a place.
  void read(int64_t i, float* to) const;

 private:
  std::filesystem::path path_of(int64_t i) const;
  Tensor load(int64_t i) const;

  std::filesystem::path folder_;
  std::shared_ptr<const Split> split_;
  int64_t classes_, known_classes_;  ///< of the data set; of the whole that it is a part of
  Shape shape_;
};

}  // namespace tessera
