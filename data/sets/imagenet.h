#pragma once

#include "data/sets/entry.h"

namespace tessera {

DatasetEntry imagenet_entry();
DatasetEntry imagenet_100_entry();

// ImageNet (ILSVRC 2012) as its archives unpack: train/WNID/WNID_NUMBER.JPEG, and either val/WNID/*.JPEG or
// val/*.JPEG with LOC_val_solution.csv beside val, a line an image: "ILSVRC2012_val_00000001,n01751748 ...".
// Classes are named by LOC_synset_mapping.txt, synset_words.txt or words.txt if one exists, else by their
// WNIDs, and numbered in the order of the sorted WNIDs.
//
// `first_classes` restricts the set to the first so many classes; 0: all. 100 is SP-ViT's ablation, n01440764
// to n01855672. Fails for a training folder that is not named by a WNID, a training image named after another
// class, a class without images, a flat val without labels, and first 100 classes that are not ImageNet's.
Dataset open_imagenet(const std::filesystem::path& dir, const DatasetOptions& options, int64_t first_classes);

}  // namespace tessera
