#pragma once

#include <filesystem>
#include <memory>

#include "data/dataset.h"
#include "engine/core/tensor.h"

namespace tessera {

// What a teacher sees in each picture of a data set, for token labelling (Jiang et al., 2021), from files
// beside it. Each has one tensor "token_labels" [2, T, h, w], F32 or F16: at each of h x w places the T
// largest scores (logits) over the whole picture, and then their classes. The map of
// train/n01440764/n01440764_10026.JPEG is n01440764/n01440764_10026.safetensors of the folder; that of a
// picture without a file is NUMBER.safetensors (see Split::name). The published maps of LV-ViT are such
// tensors, each in a PyTorch file of that name.
class TokenLabels {
 public:
  // Of the pictures of `training`. Fails where the folder or the map of a picture is missing, naming the
  // picture; or the first one is malformed.
  TokenLabels(const std::filesystem::path& folder, const Dataset& training);

  const Shape& shape() const { return shape_; }  // of every map: the first one's

  // Writes picture i's map to `to`. Classes that the data set leaves out (imagenet-100) have the score 0, as
  // all that are not among the T. Fails, naming the file, unless it holds such a tensor of that shape, its
  // scores finite and its classes the data set's, each at most once at a place.
  void read(int64_t i, float* to) const;

 private:
  std::filesystem::path path_of(int64_t i) const;
  Tensor load(int64_t i) const;

  std::filesystem::path folder_;
  std::shared_ptr<const Split> split_;
  int64_t classes_, known_classes_;  // of the data set; and those that a map may name
  Shape shape_;
};

}  // namespace tessera
