#pragma once

#include "data/augment/operation.h"
#include "engine/core/random.h"

namespace tessera {

// Photometric distortion (Howard, 2013), as segmenters are trained with it (MMSegmentation): each of the four
// half of the time, contrast before or after saturation and hue.
struct PhotometricOptions {
  double brightness = 32;  // added, up to this much of 255 either way
  double min_contrast = 0.5, max_contrast = 1.5;
  double min_saturation = 0.5, max_saturation = 1.5;
  int64_t hue = 18;  // added, up to this much of 180 either way
};

// value * factor + offset of every channel, cut to 0 .. 255 and rounded down.
void scale_values(Image& image, float factor, float offset);
// The same of the saturation, and `shift` of 180 added to the hue, which goes round: by way of OpenCV's HSV
// of bytes, bit for bit.
void scale_saturation(Image& image, float factor);
void shift_hue(Image& image, int64_t shift);

// What is drawn for one picture. A mask, whose classes have no colour, takes the same draws.
struct Photometric {
  PhotometricOptions options;
  void operator()(Image& image, Random& random, Layer layer) const;
};

}  // namespace tessera
