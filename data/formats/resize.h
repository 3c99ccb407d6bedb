#pragma once

#include "data/augment/box.h"
#include "data/formats/image.h"

namespace tessera {

// Bilinear resize with antialiasing, bit for bit that of Pillow (Image.resize, BILINEAR): a triangle filter
// as wide as the reduction, 22-bit weights, the rows first, 8-bit pixels in between.
Image resize_bilinear(const Image& image, int height, int width);
// The same with Keys' cubic of slope -1/2: Image.resize, BICUBIC.
Image resize_bicubic(const Image& image, int height, int width);

// Each new pixel is the one in which its centre lies: for masks, whose pixels cannot be mixed.
Image resize_nearest(const Image& image, int height, int width);

// The pixels in the box, all of which it must have.
Image cut_out(const Image& image, const PixelBox& box);

// The picture made size x size: the short side resized to `size`, the long one in proportion (rounded
// down), then the centre cut out. A picture that has the size comes back as it is. Fails, in the name of
// `path`, for a picture so narrow that its resized form would pass the limits of image.h.
Image fit_square(Image image, int size, const std::string& path);

// The same for a mask, by resize_nearest.
Image fit_square_nearest(const Image& mask, int size, const std::string& path);

}  // namespace tessera
