#pragma once

#include "data/sets/entry.h"

namespace tessera {

DatasetEntry tiny_imagenet_entry();

// Tiny-ImageNet (Le and Yang, 2015) as tiny-imagenet-200.zip unpacks: wnids.txt and words.txt,
// train/<wnid>/images/*.JPEG, and val/images/*.JPEG with their classes in val/val_annotations.txt. Classes
// are numbered in the order of the sorted wnids and named by words.txt. A part of the training images is
// enough. Fails for a missing file or folder, a wnid that wnids.txt lacks, an image without a label and a
// label without an image.
Dataset open_tiny_imagenet(const std::filesystem::path& dir, const DatasetOptions& options);

}  // namespace tessera
