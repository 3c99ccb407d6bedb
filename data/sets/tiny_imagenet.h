#pragma once

#include "data/dataset.h"

namespace tessera {

// Tiny-ImageNet (Le and Yang, 2015) as tiny-imagenet-200.zip unpacks: wnids.txt and words.txt,
// train/<wnid>/images/*.JPEG, and val/images/*.JPEG with their classes in val/val_annotations.txt. Class
// indices are those of the sorted wnids; a class is named by its words. A part of the training images will
// do. Fails for a missing file or folder, a wnid that wnids.txt lacks, a picture without a label and a label
// without a picture.
Dataset open_tiny_imagenet(const std::filesystem::path& dir, const DatasetOptions& options);

}  // namespace tessera
