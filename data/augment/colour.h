#pragma once

#include "data/formats/image.h"

namespace tessera {

// Colour operations on 8-bit images, in place. The results equal those of ImageOps and ImageEnhance in Pillow
// 8.0 to 9.4 bit for bit.

void invert(Image& image);                      // v -> 255 - v
void posterize(Image& image, int bits);         // keeps the upper `bits`, 0 to 8
void solarize(Image& image, double threshold);  // inverts values at or above it; 256 inverts none
// Adds `amount` to values below `threshold` and clips to 0 .. 255.
void solarize_add(Image& image, int amount, int threshold);
// Stretches each channel to the range 0 to 255. A channel with a single value stays.
void auto_contrast(Image& image);
// Equalizes the histogram of each channel.
void equalize(Image& image);

// The enhancements blend the image b with a degenerate version a that lacks the property: a + factor (b - a),
// in float, clipped to 0 .. 255 and truncated. Factor 0 gives a, 1 gives b, larger factors exaggerate.
void enhance_colour(Image& image, double factor);      // a: the image in grey
void enhance_contrast(Image& image, double factor);    // a: the mean grey of the image
void enhance_brightness(Image& image, double factor);  // a: black
void enhance_sharpness(Image& image, double factor);   // a: the smoothed image

}  // namespace tessera
