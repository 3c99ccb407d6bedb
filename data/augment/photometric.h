#pragma once

#include "data/augment/operation.h"
#include "engine/core/random.h"

namespace tessera {

/// Photometric distortion (Howard, 2013) as MMSegmentation trains with it: each of the four with probability
/// 1/2, contrast before or after saturation and hue.
struct PhotometricOptions {
  double brightness = 32;  ///< added: uniform on +- this, of 255
  double min_contrast = 0.5, max_contrast = 1.5;
  double min_saturation = 0.5, max_saturation = 1.5;
  int64_t hue = 18;  ///< added: uniform on +- this, of 180
};

/// Maps every value to value * factor + offset, clipped to 0 .. 255 and rounded down.
void scale_values(Image& image, float factor, float offset);
/// Scale the saturation by `factor`, and add `shift` to the hue modulo 180. The conversion to HSV and back
/// equals OpenCV's for bytes bit for bit.
void scale_saturation(Image& image, float factor);
void shift_hue(Image& image, int64_t shift);

/// Draws and applies the distortion. A mask consumes the same draws and stays as it is.
struct Photometric {
  PhotometricOptions options;
  void operator()(Image& image, Random& random, Layer layer) const;
};

}  // namespace tessera
