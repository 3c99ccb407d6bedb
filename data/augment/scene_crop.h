#pragma once

#include "data/augment/affine.h"
#include "data/augment/box.h"
#include "engine/core/random.h"

namespace tessera {

// How a picture with a mask is cut for training, as segmenters of ADE20K are trained (MMSegmentation).
struct SceneCropOptions {
  double min_scale = 0.5, max_scale = 2;  // of the short side to the batch's, uniform
  double longest = 4;                     // the long side is at most so many times that
  double most_of_one_class = 0.75;        // of a crop's pixels that have a class; 1: any
};

// A picture of any size and its mask: resized to a random scale, whatever its shape, and of that height x
// width pixels are cut out, or what there is of them.
class SceneCrop {
 public:
  SceneCrop(const SceneCropOptions& options, int height, int width)
      : options_(options), height_(height), width_(width) {}

  // {height, width} that a picture is resized to at `scale`.
  std::array<int, 2> scaled_size(int height, int width, double scale) const;
  // A place for the crop: the first of ten draws in which there are classes, and none has too many pixels;
  // else an eleventh.
  PixelBox draw_box(const Image& mask, Random& random) const;
  // Both at once. Fails where they differ in size.
  void operator()(Image& picture, Image& mask, Random& random) const;

 private:
  SceneCropOptions options_;
  int height_, width_;
};

}  // namespace tessera
