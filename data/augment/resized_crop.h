#pragma once

#include "data/augment/operation.h"
#include "data/formats/box.h"
#include "engine/core/random.h"

namespace tessera {

struct ResizedCropOptions {
  double min_area = 0.08, max_area = 1;  ///< fraction of the image's area
  double min_ratio = 3.0 / 4;        ///< width / height, from this to its inverse; the logarithm is uniform
  Filter filter = Filter::bilinear;  ///< or bicubic, both with antialiasing
};

/// Draws the part of an image that is kept: the first of ten draws of area and ratio that fits, else the
/// largest centred part whose ratio is allowed.
PixelBox draw_resized_crop(const ResizedCropOptions& options, int64_t height, int64_t width, Random& random);

/// Crops the box and resizes it: images by Pillow's filter (data/formats/resize.h), masks by the nearest
/// pixel.
void crop_and_resize(Image& image, const PixelBox& box, int height, int width, Filter filter, Layer layer);

/// RandomResizedCrop (Szegedy et al., 2015): a random part of an image of any size, resized to height x
/// width.
struct ResizedCrop {
  ResizedCropOptions options;
  int height, width;

  void operator()(Image& image, Random& random, Layer layer) const {
    const PixelBox box = draw_resized_crop(options, image.height, image.width, random);
    crop_and_resize(image, box, height, width, options.filter, layer);
  }
};

}  // namespace tessera
