#pragma once

#include "data/augment/affine.h"
#include "data/formats/box.h"
#include "engine/core/random.h"

namespace tessera {

/// The random crop of an image with a mask as MMSegmentation trains on ADE20K.
struct SceneCropOptions {
  double min_scale = 0.5, max_scale = 2;  ///< short side / side of the batch's images, uniform
  double longest = 4;                     ///< upper bound of long side / that scaled side
  double most_of_one_class = 0.75;  ///< largest fraction of a crop's labelled pixels in one class; 1: any
};

/// Resizes an image of any size and its mask to a random scale, keeping the ratio of the sides, and crops
/// height x width pixels, or fewer where the resized image is smaller.
class SceneCrop {
 public:
  SceneCrop(const SceneCropOptions& options, int height, int width)
      : options_(options), height_(height), width_(width) {}

  /// {height, width} of the resized image at `scale`.
  std::array<int, 2> scaled_size(int height, int width, double scale) const;
  /// Draws the crop: the first of ten draws that has labelled pixels and no class with too many of them, else
  /// an eleventh draw.
  PixelBox draw_box(const Image& mask, Random& random) const;
  /// Resizes and crops both. Fails if their sizes differ.
  void operator()(Image& picture, Image& mask, Random& random) const;

 private:
  SceneCropOptions options_;
  int height_, width_;
};

}  // namespace tessera
