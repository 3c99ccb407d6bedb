#pragma once

#include "data/sets/entry.h"

namespace tessera {

DatasetEntry image_folder_entry();

// Any folder of class folders with JPEG, PNG and BMP files, also in sub-folders. A class is named by its
// folder; classes are numbered in byte order of their names. There are either dir/train and dir/val (or
// valid, validation, test), or the class folders are in `dir` itself; in that case, and if there is no
// validation folder, options.validation_fraction of each class is held out, drawn by the seed. Images are
// fitted to image_size x image_size by fit_square; 0 means the short side of the first training image that
// can be read, at most 224. Fails for an image outside a class folder, an image in another format, a class
// without images, and a validation class without a training folder. Files that are no images are ignored, and
// Dataset::notes says so.
Dataset open_image_folder(const std::filesystem::path& dir, const DatasetOptions& options);

}  // namespace tessera
