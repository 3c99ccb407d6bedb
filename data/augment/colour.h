#pragma once

#include "data/formats/image.h"

namespace tessera {

// Colour operations on 8-bit pictures, in place, each pixel staying where it is; bit for bit those of Pillow
// 8.0 to 9.4 (ImageOps and ImageEnhance).

void invert(Image& image);                      // v -> 255 - v
void posterize(Image& image, int bits);         // keeps the upper 0 .. 8 bits
void solarize(Image& image, double threshold);  // inverts what is at or above it; 256: nothing
// Adds `amount` to what is below `threshold`, within 0 .. 255.
void solarize_add(Image& image, int amount, int threshold);
// Stretches each channel so that it runs from 0 to 255. A channel of one value stays.
void auto_contrast(Image& image);
// Each channel's values spread so that all are about as frequent.
void equalize(Image& image);

// The enhancements go from a picture without the property at factor 0, through the picture itself at 1, and
// beyond: a + factor (b - a), in float, cut to 0 .. 255 and truncated.
void enhance_colour(Image& image, double factor);      // from grey
void enhance_contrast(Image& image, double factor);    // from its mean grey
void enhance_brightness(Image& image, double factor);  // from black
void enhance_sharpness(Image& image, double factor);   // from the picture smoothed

}  // namespace tessera
