#pragma once

#include "data/dataset.h"

namespace tessera {

// ADE20K for scene parsing (Zhou et al., 2017) as ADEChallengeData2016.zip unpacks: images/training and
// images/validation hold JPEG files, annotations/training and annotations/validation PNG files of the same
// names, 8-bit grey and of their picture's size: 1 to 150 is the pixel's class, 0 one that is not counted.
// objectInfo150.txt names the classes; without it they have numbers. A part of the pictures will do.
//
// A picture is fitted to image_size (512 where it is 0) as all picture files are, its mask by the nearest
// pixel along with it. Fails for a missing folder, a folder without pictures, and a picture without
// annotation or the reverse; reading a mask fails for a PNG with a palette, colours or another depth, of
// another size than its picture, and for a pixel above 150.
Dataset open_ade20k(const std::filesystem::path& dir, const DatasetOptions& options);

}  // namespace tessera
