#pragma once

#include "data/formats/box.h"
#include "data/formats/image.h"

namespace tessera {

// Bilinear resize with antialiasing, equal to Pillow's Image.resize (BILINEAR) bit for bit: a triangle filter
// as wide as the reduction, 22-bit weights, horizontal pass first, 8-bit pixels in between.
Image resize_bilinear(const Image& image, int height, int width);
// Bicubic resize (Keys, 1981, slope -1/2), equal to Pillow's Image.resize (BICUBIC) bit for bit.
Image resize_bicubic(const Image& image, int height, int width);

// Nearest-neighbour resize, for masks, whose pixels cannot be mixed: takes the pixel in which the centre
// lies.
Image resize_nearest(const Image& image, int height, int width);

// Crops the box, which must lie inside the image.
Image cut_out(const Image& image, const PixelBox& box);

/// How a picture of any size becomes a square.
struct SquareFit {
  double crop = 1;       ///< the square's side as a share of the short side, in (0, 1]
  bool bicubic = false;  ///< the filter; else bilinear
  bool operator==(const SquareFit&) const = default;
};

// Makes an image size x size: resizes the short side to size / crop and the long one in proportion (both
// rounded down, as torchvision and timm do), then crops the centre. An image of that size is returned as it
// is where nothing is cropped. Fails, with a message that begins with `path`, for an image so narrow that the
// resized one would exceed the limits of image.h.
Image fit_square(Image image, int size, const std::string& path, const SquareFit& fit = {});

// Makes a mask size x size with nothing cropped of the short side, by resize_nearest.
Image fit_square_nearest(const Image& mask, int size, const std::string& path);

}  // namespace tessera
