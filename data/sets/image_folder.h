#pragma once

#include "data/dataset.h"

namespace tessera {

// Any folder of class folders with JPEG, PNG and BMP files, in sub-folders too; a class is named by its
// folder, classes are numbered in byte order of their names. Either dir/train and dir/val (or valid,
// validation, test), or the class folders in `dir` itself: then options.validation_fraction of each class is
// held out, by the seed. Pictures are fitted to image_size x image_size (resize.h); 0 takes the short side of
// the first training picture, 224 at most. Fails for a picture outside a class folder, a picture in another
// format, a class without pictures, and a validation class that has no training folder. Other files are left
// out, which the notes say.
Dataset open_image_folder(const std::filesystem::path& dir, const DatasetOptions& options);

}  // namespace tessera
