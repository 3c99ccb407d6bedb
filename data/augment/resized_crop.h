#pragma once

#include "data/augment/box.h"
#include "data/augment/operation.h"
#include "engine/core/random.h"

namespace tessera {

struct ResizedCropOptions {
  double min_area = 0.08, max_area = 1;  // of the picture's
  double min_ratio = 3.0 / 4;            // width to height: from this to its inverse, in the logarithm
  Filter filter = Filter::bilinear;      // or bicubic, both with antialiasing
};

// The part of a picture that is kept: ten draws of area and ratio, the first that fits; else the largest part
// about the centre within the ratios.
PixelBox draw_resized_crop(const ResizedCropOptions& options, int64_t height, int64_t width, Random& random);

// The box, resized: pictures by Pillow's filter (data/formats/resize.h), masks by the nearest pixel.
void crop_and_resize(Image& image, const PixelBox& box, int height, int width, Filter filter, Layer layer);

// A random part of a picture of any size, made height x width (Szegedy et al., 2015; RandomResizedCrop).
struct ResizedCrop {
  ResizedCropOptions options;
  int height, width;

  void operator()(Image& image, Random& random, Layer layer) const {
    const PixelBox box = draw_resized_crop(options, image.height, image.width, random);
    crop_and_resize(image, box, height, width, options.filter, layer);
  }
};

}  // namespace tessera
