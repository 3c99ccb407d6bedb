#pragma once

#include "data/sets/entry.h"

namespace tessera {

DatasetEntry ade20k_entry();

// ADE20K for scene parsing (Zhou et al., 2017) as ADEChallengeData2016.zip unpacks. images/training and
// images/validation hold JPEG files; annotations/training and annotations/validation hold PNG files of the
// same names, 8-bit grey, of the image's size: 1 to 150 is the pixel's class, 0 means that the pixel is not
// counted. objectInfo150.txt names the classes; without it they are numbered. A part of the images is enough.
//
// Images are fitted to image_size (default 512) by fit_square, masks in the same way by the nearest pixel.
// Opening fails for a missing folder, a folder without images, an image without annotation, and an annotation
// without image. Reading a mask fails for a PNG with a palette, colours or another depth, for another size
// than its image's, and for a pixel above 150.
Dataset open_ade20k(const std::filesystem::path& dir, const DatasetOptions& options);

}  // namespace tessera
